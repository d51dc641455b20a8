"""Published figures beside measured ones: the name of the overlay, and the source."""

from django.utils.translation import gettext as _

from pgperf.catalog.published import Publication


def overlay() -> str:
    """The switch of a chart's overlay, which is also its entry in the legend."""
    return _("published figures")


def note(publication: Publication) -> str:
    """The source of the figures, and how to compare with them."""
    text = _(
        "Published figures: %(title)s. %(conditions)s Other versions and machines: compare ratios, not speeds."
    )
    return text % {"title": publication.title, "conditions": publication.conditions}
