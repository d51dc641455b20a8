"""Published figures beside measured ones: the name of the overlay, and the source."""

from django.utils.translation import gettext as _

from pgperf.reports.run_rows import RunRows


def overlay() -> str:
    """The switch of a chart's overlay, which is also its entry in the legend."""
    return _("published figures")


def source(rows: RunRows) -> str:
    """The source of the figures, and how to compare with them; "" where no variant has one."""
    publication = rows.publication
    if publication is None or not rows.published:
        return ""
    text = _(
        "Published figures: %(title)s. %(conditions)s Other versions and machines: compare ratios, not speeds."
    )
    return text % {"title": publication.title, "conditions": publication.conditions}
