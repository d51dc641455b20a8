"""A pause's reason is a sentence, and the longest label of a variant fits."""

from django.db import migrations, models

import pgperf.db.validators


class Migration(migrations.Migration):
    dependencies = [("pgperf", "0020_load_share_machine")]

    operations = [
        migrations.AlterField(
            model_name="pause",
            name="reason",
            field=models.CharField(
                blank=True, max_length=200, validators=[pgperf.db.validators.one_line], verbose_name="reason"
            ),
        ),
        migrations.AlterField(
            model_name="variantresult", name="label", field=models.CharField(max_length=300)
        ),
        migrations.AlterField(
            model_name="changepoint", name="label", field=models.CharField(max_length=300)
        ),
        migrations.AlterField(
            model_name="changepoint", name="below", field=models.CharField(blank=True, max_length=300)
        ),
        migrations.AlterField(
            model_name="run",
            name="confirms_variant",
            field=models.CharField(blank=True, editable=False, max_length=300),
        ),
    ]
