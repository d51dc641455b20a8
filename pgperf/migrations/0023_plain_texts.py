"""Help texts and a name in plain words; no table changes."""

from django.db import migrations, models

import pgperf.db.fields
import pgperf.db.validators


class Migration(migrations.Migration):
    dependencies = [("pgperf", "0022_layers_of_changes")]

    operations = [
        migrations.AlterModelOptions(
            name="machinelook",
            options={
                "default_permissions": (),
                "verbose_name": "machine check",
                "verbose_name_plural": "machine checks",
            },
        ),
        migrations.AlterField(
            model_name="benchmark",
            name="environments",
            field=models.JSONField(
                default=pgperf.db.fields.default_environment,
                help_text="The Python environments to measure side by side. The first is the baseline. default is the worker's own; PGPERF['ENVIRONMENTS'] has the others.",
                validators=[pgperf.db.validators.environment_list],
                verbose_name="environments",
            ),
        ),
        migrations.AlterField(
            model_name="benchmark",
            name="precision",
            field=models.FloatField(
                default=2.0,
                help_text="Target precision in ±%: the run stops early when the 95 % confidence intervals of its main comparisons are within this range: 0.1 to 50 %, or 0: no early stop.",
                verbose_name="target precision (±%)",
            ),
        ),
        migrations.AlterField(
            model_name="benchmark",
            name="row_type",
            field=models.CharField(
                choices=[
                    ("tuple", "tuple: by position"),
                    ("named", "named: DictCursor of psycopg2, dict_row of psycopg"),
                ],
                default="tuple",
                help_text="How drivers return rows. asyncpg and libpq have one row type, which this setting does not change.",
                max_length=12,
                verbose_name="row type",
            ),
        ),
        migrations.AlterField(
            model_name="benchmark",
            name="slice_ms",
            field=models.PositiveIntegerField(
                default=0,
                help_text="Length of a timed slice: 10 to 5000 ms, or 0: pgperf chooses it from a short trial run (50 to 5000 ms).",
                verbose_name="slice length (ms)",
            ),
        ),
        migrations.AlterField(
            model_name="pause",
            name="reason",
            field=models.CharField(
                blank=True,
                help_text="Shown to all users. The pause cancels every running run; completed blocks are kept.",
                max_length=200,
                validators=[pgperf.db.validators.one_line],
                verbose_name="reason",
            ),
        ),
        migrations.AlterField(
            model_name="target",
            name="builds_on",
            field=models.SlugField(
                blank=True,
                help_text="The route of the configuration that this one changes in one respect. pgperf compares the two. Empty: none.",
                max_length=30,
                verbose_name="builds on",
            ),
        ),
        migrations.AlterField(
            model_name="workload",
            name="sql",
            field=models.TextField(
                blank=True,
                help_text="One statement, with %s for each value of the field Arguments.",
                verbose_name="SQL",
            ),
        ),
    ]
