"""The tables of the tests' library."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Shelf",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=50)),
                ("details", models.JSONField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="Vault",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=50)),
                ("password", models.CharField(max_length=50)),
                ("api_key", models.CharField(max_length=50, unique=True)),
                ("token_count", models.IntegerField(default=0)),
                ("has_password", models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name="Card",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.CharField(max_length=20)),
                (
                    "clerk",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Fine",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("euros", models.IntegerField()),
                ("card", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="library.card")),
            ],
            options={
                "ordering": ["card__reader__name", models.OrderBy(models.F("euros"), descending=True)],
            },
        ),
        migrations.CreateModel(
            name="LockedShelf",
            fields=[
                (
                    "shelf_ptr",
                    models.OneToOneField(
                        auto_created=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        parent_link=True,
                        primary_key=True,
                        serialize=False,
                        to="library.shelf",
                    ),
                ),
                ("since", models.DateField()),
            ],
            bases=("library.shelf",),
        ),
        migrations.CreateModel(
            name="Loan",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("returned", models.DateField(null=True)),
                (
                    "shelf",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="loans", to="library.shelf"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="OldShelf",
            fields=[],
            options={
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("library.shelf",),
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField()),
                ("object_id", models.PositiveIntegerField()),
                (
                    "content_type",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="contenttypes.contenttype"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Reader",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=50)),
                ("favourites", models.ManyToManyField(related_name="fans", to="library.shelf")),
                ("friends", models.ManyToManyField(to="library.reader")),
                (
                    "shelves",
                    models.ManyToManyField(
                        related_name="readers", through="library.Loan", to="library.shelf"
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="loan",
            name="reader",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="library.reader"),
        ),
        migrations.CreateModel(
            name="EntryToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.CharField(max_length=50)),
                (
                    "reader",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="library.reader"),
                ),
            ],
        ),
        migrations.AddField(
            model_name="card",
            name="reader",
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, to="library.reader"),
        ),
        migrations.CreateModel(
            name="Room",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=50)),
                (
                    "shelf",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="rooms", to="library.shelf"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Seal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "by_key",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sealed",
                        to="library.vault",
                        to_field="api_key",
                    ),
                ),
                ("vault", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="library.vault")),
            ],
        ),
    ]
