"""The statements of databases' servers, as workers read them on request."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgperf", "0011_schedules")]

    operations = [
        migrations.CreateModel(
            name="StatementList",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("asked_at", models.DateTimeField(null=True)),
                ("read_at", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, max_length=300)),
                ("statements", models.JSONField(default=list)),
                (
                    "database",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="statement_list",
                        to="pgperf.database",
                    ),
                ),
            ],
            options={
                "verbose_name": "list of statements",
                "verbose_name_plural": "lists of statements",
                "default_permissions": (),
            },
        ),
    ]
