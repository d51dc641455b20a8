import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pgperf", "0007_books_and_verdicts"),
    ]

    operations = [
        migrations.AddField(
            model_name="benchmark",
            name="diagnostic_ms",
            field=models.PositiveIntegerField(
                default=1000,
                help_text="After the timed rounds every variant works this long once more while the server is asked what it waits for. 0: none, else 50 ms to 10 s.",
                validators=[django.core.validators.MaxValueValidator(10000)],
                verbose_name="diagnostic slice (ms)",
            ),
        ),
    ]
