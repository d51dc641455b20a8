"""A sentence with the routes that it is about."""

from collections.abc import Iterable, Sequence

from django.utils.translation import gettext as _

from pgperf.models import VariantResult

#: Routes that a sentence names, and those that it names as the only others.
_MOST_NAMES, _FEW_NAMES = 4, 2


def grouped(pairs: Iterable[tuple[str, VariantResult]]) -> dict[str, list[VariantResult]]:
    groups: dict[str, list[VariantResult]] = {}
    for text, row in pairs:
        groups.setdefault(text, []).append(row)
    return groups


def of_routes(text: str, own: Sequence[VariantResult], shown: Sequence[VariantResult], load: str = "") -> str:
    """The sentence, with the routes that it is about where others are shown too, and with their number
    of clients (`load`) where the run has several.
    """
    routes = "" if len(own) == len(shown) else _named(own, shown)
    about = " · ".join(filter(None, (routes, load)))
    return _("%(about)s: %(text)s") % {"about": about, "text": text} if about else text


def _named(own: Sequence[VariantResult], shown: Sequence[VariantResult]) -> str:
    """Their names; of many, their number, or the names of the few others."""
    names, others = ([row.route for row in rows] for rows in (own, [row for row in shown if row not in own]))
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    if len(others) <= _FEW_NAMES:
        return _("All routes but %s") % ", ".join(others)
    return _("%(own)d of %(all)d routes") % {"own": len(own), "all": len(shown)}
