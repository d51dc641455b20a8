"""A change of the headline figure has what each layer's step did at the same run."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgperf", "0021_reason_and_labels")]

    operations = [
        migrations.AddField(model_name="changepoint", name="layers", field=models.JSONField(null=True)),
    ]
