"""Blocks as packing.py writes them instead of JSON, and their histograms without base64."""

import base64

import django.db.models.deletion
from django.db import migrations, models

from pgperf import packing

_AT_ONCE = 200
#: base64 of the header that HdrHistogram's text form begins with: cookie and length, four bytes each.
_TEXT = b'HIST'
_HEADER = 8
_COOKIE = bytes.fromhex('1c849314')


def _in_parts(apps, schema_editor):
    """The stored blocks, some at a time, on every database alike."""
    blocks = apps.get_model('pgperf', 'BlockResult').objects.using(schema_editor.connection.alias).order_by('pk')
    last = 0
    while part := list(blocks.filter(pk__gt=last)[:_AT_ONCE]):
        last = part[-1].pk
        yield blocks, part


def pack(apps, schema_editor):
    for blocks, part in _in_parts(apps, schema_editor):
        for row in part:
            row.packed = packing.pack(row.data)
            row.histogram = _as_bytes(bytes(row.histogram))
        blocks.bulk_update(part, ['packed', 'histogram'])


def unpack(apps, schema_editor):
    for blocks, part in _in_parts(apps, schema_editor):
        for row in part:
            row.data = packing.unpack(bytes(row.packed))
            row.histogram = _as_text(bytes(row.histogram))
        blocks.bulk_update(part, ['data', 'histogram'])


def _as_bytes(histogram):
    return base64.b64decode(histogram)[_HEADER:] if histogram.startswith(_TEXT) else histogram


def _as_text(histogram):
    if not histogram:
        return histogram
    return base64.b64encode(_COOKIE + len(histogram).to_bytes(4, 'big') + histogram)


class Migration(migrations.Migration):

    dependencies = [
        ('pgperf', '0003_permissions_and_pins'),
    ]

    operations = [
        migrations.AddField(
            model_name='blockresult',
            name='packed',
            field=models.BinaryField(default=b''),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name='blockresult',
            name='data',
            field=models.JSONField(default=dict),
        ),
        migrations.RunPython(pack, unpack),
        migrations.RemoveField(
            model_name='blockresult',
            name='data',
        ),
        migrations.AlterField(
            model_name='blockresult',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='blocks', to='pgperf.run'),
        ),
        migrations.AlterField(
            model_name='variantresult',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='variants', to='pgperf.run'),
        ),
    ]
