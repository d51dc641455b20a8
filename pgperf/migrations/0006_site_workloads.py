import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pgperf', '0005_groups'),
    ]

    operations = [
        migrations.AddField(
            model_name='benchmark',
            name='compared_with',
            field=models.ForeignKey(blank=True, help_text='A second workload, measured beside the first in every layer: what does the change save?', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='pgperf.workload', verbose_name='compared with'),
        ),
        migrations.AddField(
            model_name='workload',
            name='fetch',
            field=models.CharField(choices=[('get', 'get: the one object that matches'), ('list', 'list: all objects that match'), ('first', 'first: one object, if any'), ('count', 'count'), ('exists', 'exists'), ('values_list', 'values list: tuples of values, no objects')], default='get', max_length=12, verbose_name='fetch'),
        ),
        migrations.AddField(
            model_name='workload',
            name='limit',
            field=models.PositiveIntegerField(default=0, help_text='0: none.', verbose_name='limit'),
        ),
        migrations.AddField(
            model_name='workload',
            name='lookup',
            field=models.JSONField(blank=True, default=dict, help_text='As for filter(), in JSON: {"isbn": "9790000000001"} or {"year__gte": 2000}.', verbose_name='lookup'),
        ),
        migrations.AddField(
            model_name='workload',
            name='model',
            field=models.CharField(blank=True, help_text='A query without code, of this model.', max_length=200, verbose_name='model'),
        ),
        migrations.AddField(
            model_name='workload',
            name='ordering',
            field=models.JSONField(blank=True, default=list, verbose_name='ordering'),
        ),
        migrations.AddField(
            model_name='workload',
            name='prefetch_related',
            field=models.JSONField(blank=True, default=list, verbose_name='prefetch related'),
        ),
        migrations.AddField(
            model_name='workload',
            name='select_related',
            field=models.JSONField(blank=True, default=list, verbose_name='select related'),
        ),
        migrations.AddField(
            model_name='workload',
            name='values',
            field=models.JSONField(blank=True, default=list, help_text='Fields of a values list; empty: all.', verbose_name='values'),
        ),
        migrations.AlterField(
            model_name='workload',
            name='orm',
            field=models.CharField(blank=True, help_text='A callable registered with @workload: what it sends is captured and run by the layers below.', max_length=100, verbose_name='ORM callable'),
        ),
        migrations.AlterField(
            model_name='workload',
            name='sql',
            field=models.TextField(blank=True, help_text='One statement with %s for each argument, which are the arguments above.', verbose_name='SQL'),
        ),
    ]
