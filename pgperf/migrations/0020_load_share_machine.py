"""The machine on which a load host makes load, so that no other run measures there meanwhile."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgperf", "0019_statement_list_asked_by")]

    operations = [
        migrations.AddField(
            model_name="loadshare", name="machine", field=models.CharField(blank=True, max_length=80, default=""),
            preserve_default=False,
        ),
    ]
