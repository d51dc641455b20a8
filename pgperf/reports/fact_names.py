"""The facts of a run's definition and environment as people read them: name and value."""

from typing import Any

from django.db.models import Model
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from pgperf.analysis.definition_diff import Difference
from pgperf.core.records import CONNECTIONS, ENVIRONMENTS, SETTING_SOURCES
from pgperf.models import Benchmark, Workload
from pgperf.reports.labels import layer_title
from pgperf.reports.table import Cell, words

#: Parts whose facts have names that are not ours: those of settings, packages and routes.
_VERBATIM = ("server", "packages", SETTING_SOURCES, "access")
#: Parts whose facts are below such a name.
_NAMED = (CONNECTIONS, ENVIRONMENTS)
_LAYERS, _WORKLOADS = "layers", "workloads"
_BYTES = "_bytes"
_UNITS = {"_ms": "ms", "_us": "µs", "_s": "s", "_percent": "%"}
_SPELLED = {
    "cpu": "CPU",
    "cpus": "CPUs",
    "django": "Django",
    "python": "Python",
    "scram": "SCRAM",
    "tls": "TLS",
}


def fact_name(path: str) -> str:
    """`machine.memory_bytes` is "machine · memory". `path`: the keys, with dots between."""
    return " · ".join(fact_parts(path))


def fact_parts(path: str) -> list[str]:
    """The name of each key; a workload and its number are one."""
    first, *keys = path.split(".")
    if not keys:
        return [_field(Benchmark, first)]
    if first in _VERBATIM:
        return [_plain(first), ".".join(keys)]
    if first == _WORKLOADS:
        return [_("workload %s") % keys[0], *(_field(Workload, key) for key in keys[1:])]
    return [_plain(first), _second(first, keys[0]), *map(_plain, keys[1:])]


def fact_text(path: str, text: str) -> str:
    """A stored value: "–" for one that the run does not have, and bytes in a unit that suits them."""
    known = {"": "–", "True": _("yes"), "False": _("no")}
    if path.endswith(_BYTES) and text.isascii() and text.isdigit():
        return str(filesizeformat(text))
    return known.get(text, text)


def difference_cells(found: Difference) -> tuple[Cell, Cell, Cell]:
    """Its name, and both values."""
    before, after = (fact_text(found.what, text) for text in (found.before, found.after))
    return words(fact_name(found.what)), words(before), words(after)


def _second(first: str, key: str) -> str:
    if first == _LAYERS:
        return layer_title(key)
    return key if first in _NAMED else _plain(key)


def _field(model: type[Model], key: str) -> str:
    """The name of the form's field of this key, where there is one."""
    fields: dict[str, Any] = {field.name: field for field in model._meta.fields}
    return str(fields[key].verbose_name) if key in fields else _plain(key)


def _plain(key: str) -> str:
    """Words for underscores, and a unit in brackets."""
    key = key.removesuffix(_BYTES)
    suffix = next((suffix for suffix in _UNITS if key.endswith(suffix)), "")
    words = [_SPELLED.get(word, word) for word in key.removesuffix(suffix).split("_")]
    return " ".join([*words, f"({_UNITS[suffix]})"] if suffix else words)
