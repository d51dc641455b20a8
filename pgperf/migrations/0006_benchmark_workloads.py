"""A benchmark has a list of workloads instead of one and a second to compare it with."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def link(apps: Any, schema_editor: Any) -> None:
    """Move `workload` and `compared_with` to the list."""
    using = schema_editor.connection.alias
    benchmarks, links = (apps.get_model("pgperf", name) for name in ("Benchmark", "BenchmarkWorkload"))
    links.objects.using(using).bulk_create(
        links(benchmark_id=row.pk, workload_id=workload, position=position)
        for row in benchmarks.objects.using(using).all()
        for position, workload in enumerate(dict.fromkeys((row.workload_id, row.compared_with_id)))
        if workload is not None
    )


def unlink(apps: Any, schema_editor: Any) -> None:
    """Move the first two workloads back; the others are lost."""
    using = schema_editor.connection.alias
    benchmarks, links = (apps.get_model("pgperf", name) for name in ("Benchmark", "BenchmarkWorkload"))
    for row in benchmarks.objects.using(using).all():
        found = links.objects.using(using).filter(benchmark_id=row.pk).order_by("position", "id")
        first, second, *_ = [*found.values_list("workload_id", flat=True)[:2], None, None]
        benchmarks.objects.using(using).filter(pk=row.pk).update(
            workload_id=first, compared_with_id=second
        )


class Migration(migrations.Migration):

    dependencies = [
        ('pgperf', '0005_connection_modes_and_workers'),
    ]

    operations = [
        migrations.CreateModel(
            name='BenchmarkWorkload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField(verbose_name='position')),
                ('benchmark', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='workload_links', to='pgperf.benchmark', verbose_name='benchmark')),
                ('workload', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='benchmark_links', to='pgperf.workload', verbose_name='workload')),
            ],
            options={
                'verbose_name': 'workload of a benchmark',
                'verbose_name_plural': 'workloads of benchmarks',
                'ordering': ['benchmark', 'position', 'id'],
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'workload'), name='pgperf_one_link_per_workload')],
            },
        ),
        # Going back, the column is filled before it may not be null.
        migrations.AlterField(
            model_name='benchmark',
            name='workload',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='pgperf.workload', verbose_name='workload'),
        ),
        migrations.RunPython(link, unlink),
        migrations.RemoveField(
            model_name='benchmark',
            name='compared_with',
        ),
        migrations.RemoveField(
            model_name='benchmark',
            name='workload',
        ),
    ]
