from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pgperf", "0010_agents"),
    ]

    operations = [
        migrations.AlterField(
            model_name="variantresult",
            name="route",
            field=models.CharField(max_length=60),
        ),
    ]
