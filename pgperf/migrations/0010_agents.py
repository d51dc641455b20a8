import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pgperf", "0009_target_login_and_certificates"),
    ]

    operations = [
        migrations.AddField(
            model_name="database",
            name="agent",
            field=models.SlugField(
                blank=True,
                help_text="Where the server is on another machine than the worker: the name of the pgperf agent there, a worker on the queue pgperf-agent-NAME. Without one the server's processor time is unknown.",
                max_length=40,
                verbose_name="agent",
            ),
        ),
        migrations.CreateModel(
            name="Sampling",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("attempt", models.PositiveIntegerField()),
                ("queue", models.CharField(max_length=100)),
                ("agent", models.CharField(blank=True, max_length=200)),
                ("refusal", models.CharField(blank=True, max_length=300)),
                ("order", models.JSONField(default=dict)),
                ("order_number", models.PositiveIntegerField(default=0)),
                ("answer", models.JSONField(default=dict)),
                ("answer_number", models.PositiveIntegerField(default=0)),
                ("readings", models.BinaryField(default=b"")),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="samplings",
                        to="pgperf.run",
                    ),
                ),
            ],
            options={
                "verbose_name": "sampling",
                "verbose_name_plural": "samplings",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("run", "attempt"), name="pgperf_one_sampling_per_attempt")
                ],
            },
        ),
    ]
