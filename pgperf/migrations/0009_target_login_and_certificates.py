from django.db import migrations, models

from pgperf import validators


class Migration(migrations.Migration):
    dependencies = [
        ("pgperf", "0008_diagnostic_slices"),
    ]

    operations = [
        migrations.AddField(
            model_name="target",
            name="sslrootcert",
            field=models.CharField(
                blank=True,
                help_text=(
                    "Certificates to check the server's against: the name of a file in PGPERF['SECRETS_DIR']. "
                    "Empty: what libpq looks for, ~/.postgresql/root.crt of the worker's user."
                ),
                max_length=100,
                validators=[validators.file_name],
                verbose_name="sslrootcert",
            ),
        ),
        migrations.AddField(
            model_name="target",
            name="user",
            field=models.CharField(
                blank=True,
                help_text="A login of this route's own, which takes a credential too. Empty: the database's.",
                max_length=63,
                validators=[validators.plain_text],
                verbose_name="user",
            ),
        ),
        migrations.AddField(
            model_name="target",
            name="credential",
            field=models.CharField(
                blank=True,
                help_text="The password of this route's own login. Empty: the database's.",
                max_length=120,
                validators=[validators.credential_reference],
                verbose_name="credential",
            ),
        ),
    ]
