"""Looks at the machines that measure: the request of a page, and the answer of a worker."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgperf", "0012_statement_lists")]

    operations = [
        migrations.CreateModel(
            name="MachineLook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("queue", models.CharField(blank=True, max_length=100)),
                ("asked_at", models.DateTimeField()),
                ("host", models.CharField(blank=True, max_length=80)),
                ("worker", models.CharField(blank=True, max_length=200)),
                ("taken_at", models.DateTimeField(null=True)),
                ("findings", models.JSONField(default=dict)),
                ("refusal", models.CharField(blank=True, max_length=300)),
            ],
            options={
                "verbose_name": "look at a machine",
                "verbose_name_plural": "looks at machines",
                "default_permissions": (),
            },
        ),
    ]
