"""`restricted` becomes a flag of its own: set where groups are, and where a parent is gone."""

from typing import Any

from django.db import migrations, models
from django.db.models import Q


def restrict(apps: Any, schema_editor: Any) -> None:
    """Set the flags.

    Whether a deleted benchmark or database was restricted is not known any more, so runs that lost
    one are restricted. A superuser can lift that.
    """
    using = schema_editor.connection.alias
    database, benchmark, run = (apps.get_model("pgperf", name) for name in ("Database", "Benchmark", "Run"))
    for model in (database, benchmark):
        owner = f"{model._meta.model_name}_id"
        named = model.groups.through.objects.using(using).values(owner)
        model.objects.using(using).filter(pk__in=named).update(restricted=True)
    databases = list(database.objects.using(using).filter(restricted=True).values_list("pk", flat=True))
    benchmarks = benchmark.objects.using(using).filter(Q(restricted=True) | Q(database__in=databases))
    runs = run.objects.using(using)
    hidden = Q(database__in=databases) | Q(benchmark__in=list(benchmarks.values_list("pk", flat=True)))
    runs.filter(hidden | Q(database=None) | Q(benchmark=None)).update(restricted=True)
    runs.filter(message__startswith="Waits for ").update(message="Waits for its turn.")  # it named another run
    runs.exclude(requested_by=None, request_token=None).update(by_user=True)


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('pgperf', '0001_first_release'),
    ]

    operations = [
        migrations.AddField(
            model_name='benchmark',
            name='restricted',
            field=models.BooleanField(default=False, help_text='Only members of the groups and superusers may see it; without groups, only superusers. Choosing groups ticks this box. Only a superuser may untick it.', verbose_name='restricted'),
        ),
        migrations.AddField(
            model_name='database',
            name='restricted',
            field=models.BooleanField(default=False, help_text='Only members of the groups and superusers may see it; without groups, only superusers. Choosing groups ticks this box. Only a superuser may untick it.', verbose_name='restricted'),
        ),
        migrations.AddField(
            model_name='run',
            name='by_user',
            field=models.BooleanField(default=False, editable=False),
        ),
        migrations.AddField(
            model_name='workload',
            name='groups',
            field=models.ManyToManyField(blank=True, db_constraint=False, help_text='The groups whose members may see it, and the benchmarks that use it. Members still need the permissions.', related_name='+', to='auth.group', verbose_name='groups'),
        ),
        migrations.AddField(
            model_name='workload',
            name='restricted',
            field=models.BooleanField(default=False, help_text='Only members of the groups and superusers may see it; without groups, only superusers. Choosing groups ticks this box. Only a superuser may untick it.', verbose_name='restricted'),
        ),
        migrations.AlterField(
            model_name='benchmark',
            name='groups',
            field=models.ManyToManyField(blank=True, db_constraint=False, help_text='The groups whose members may see it and run it. Members still need the permissions.', related_name='+', to='auth.group', verbose_name='groups'),
        ),
        migrations.AlterField(
            model_name='benchmark',
            name='name',
            field=models.SlugField(error_messages={'unique': 'This name is not available. Choose another name.'}, max_length=60, unique=True, verbose_name='name'),
        ),
        migrations.AlterField(
            model_name='database',
            name='groups',
            field=models.ManyToManyField(blank=True, db_constraint=False, help_text='The groups whose members may see it and run benchmarks on it. Members still need the permissions.', related_name='+', to='auth.group', verbose_name='groups'),
        ),
        migrations.AlterField(
            model_name='database',
            name='name',
            field=models.SlugField(error_messages={'unique': 'This name is not available. Choose another name.'}, max_length=60, unique=True, verbose_name='name'),
        ),
        migrations.AlterField(
            model_name='run',
            name='restricted',
            field=models.BooleanField(default=False, editable=False, verbose_name='restricted'),
        ),
        migrations.AlterField(
            model_name='workload',
            name='name',
            field=models.SlugField(error_messages={'unique': 'This name is not available. Choose another name.'}, max_length=60, unique=True, verbose_name='name'),
        ),
        migrations.RunPython(restrict, migrations.RunPython.noop),
    ]
