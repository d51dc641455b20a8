"""What one of two runs lacks: a layer or a route of which it has no variant is told once, not for
each variant.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.run_comparison import Identified
from pgperf.core.records import Variant
from pgperf.reports.labels import field_title, variant_title

#: Fields of a variant whose value a run may lack entirely, the one that explains more first.
_WHOLE = ("layer", "route")


@dataclass(frozen=True)
class Lacking:
    """Variants that the other run lacks. `field`: "layer" or "route" where it has no variant of that
    one; "" for a single variant.
    """

    variants: Sequence[Variant]
    field: str = ""

    @property
    def labels(self) -> list[str]:
        return [variant.label for variant in self.variants]

    @property
    def title(self) -> str:
        first = self.variants[0]
        if not self.field:
            return variant_title(first)
        name = field_title(first, self.field)
        return _("route %s") % name if self.field == "route" else name

    def __str__(self) -> str:
        return f"{self.title} ({self._count})" if self.field else self.title

    def sentence(self, own: str, other: str) -> str:
        """`own` and `other`: the names of the runs that measured and that lack it."""
        names = {"what": self.title, "own": own, "other": other, "count": self._count}
        if not self.field:
            return _("%(what)s was measured in %(own)s and not in %(other)s.") % names
        if self.field == "route":
            return _("The %(what)s was not measured in %(other)s (%(count)s).") % names
        return _("%(what)s was not measured in %(other)s (%(count)s).") % names

    @property
    def _count(self) -> str:
        count = len(self.variants)
        return ngettext("%d variant", "%d variants", count) % count


def lacking(own: Identified, other: Identified) -> list[Lacking]:
    """What the other run lacks of this one. Both by a name that the same variant has in both."""
    absent = [level.variant for name, level in own.items() if name not in other]
    present = [level.variant for level in other.values()]
    groups: dict[tuple[str, str], list[Variant]] = {}
    for variant in absent:
        field = _whole(variant, present)
        groups.setdefault((field, getattr(variant, field or "label")), []).append(variant)
    return [Lacking(variants, field) for (field, _name), variants in groups.items()]


def _whole(variant: Variant, present: Sequence[Variant]) -> str:
    """The field whose value is in no variant of the other run; "" without one."""
    missing = (
        field for field in _WHOLE if getattr(variant, field) not in {getattr(each, field) for each in present}
    )
    return next(missing, "")
