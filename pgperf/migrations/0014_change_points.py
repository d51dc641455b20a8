"""Change points of steps over runs, and in what each run's environment differs from the one before."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgperf", "0013_machine_look")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="environment_changes",
            field=models.JSONField(editable=False, null=True),
        ),
        migrations.CreateModel(
            name="ChangePoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(max_length=200)),
                ("below", models.CharField(blank=True, max_length=200)),
                ("found_by", models.PositiveBigIntegerField()),
                ("before_us", models.FloatField()),
                ("after_us", models.FloatField()),
                ("low_us", models.FloatField()),
                ("high_us", models.FloatField()),
                ("before_ratio", models.FloatField(null=True)),
                ("after_ratio", models.FloatField(null=True)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="changes",
                        to="pgperf.run",
                    ),
                ),
            ],
            options={
                "verbose_name": "change point",
                "verbose_name_plural": "change points",
                "ordering": ["run", "id"],
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "label", "below"), name="pgperf_one_change_per_step"
                    )
                ],
            },
        ),
    ]
