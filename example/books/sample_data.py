"""Sample data of the example site: enough books for pagination, joins and search."""

import itertools
import random

from example.books.models import Author, Book, Publisher

PUBLISHERS = {
    "Lantern House": "Leeds", "Cobalt Press": "Lisbon", "Third Shelf": "Toronto", "Meridian & Daughters": "Nairobi",
    "North Quay": "Bergen", "Paper Orchard": "Kyoto",
}  # fmt: skip
FIRST = ("Ada", "Bruno", "Chidi", "Dana", "Emil", "Farah", "Greta", "Hugo", "Ines", "Jun")
LAST = ("Abara", "Brandt", "Costa", "Dahl", "Eriksen", "Fujita", "Grieco", "Hallam")
QUALITIES = (
    "Quiet",
    "Hidden",
    "Second",
    "Patient",
    "Northern",
    "TemporaryPinning",
    "Glass",
    "Slow",
    "Open",
    "Restless",
)
THINGS = ("Index", "Harbour", "Ledger", "Garden", "Query", "Winter", "Join", "Atlas", "Orchard", "Window")
TITLES = ("The {} {}", "One {} {}", "Towards {} {}", "{} {} Stories")


def create_books() -> None:
    """Create the catalogue if it is empty. A seeded generator gives the same books everywhere."""
    if Book.objects.exists():
        return
    choose = random.Random(2026)
    publishers = Publisher.objects.bulk_create(
        Publisher(name=name, city=city) for name, city in PUBLISHERS.items()
    )
    authors = Author.objects.bulk_create(Author(name=f"{first} {last}") for first in FIRST for last in LAST)
    words = list(itertools.product(TITLES, QUALITIES, THINGS))
    choose.shuffle(words)
    titles = [title.format(quality, thing) for title, quality, thing in words]
    Book.objects.bulk_create(
        _book(number, title, choose, publishers, authors) for number, title in enumerate(titles, start=1)
    )


def _book(
    number: int, title: str, choose: random.Random, publishers: list[Publisher], authors: list[Author]
) -> Book:
    return Book(
        title=title,
        author=choose.choice(authors),
        publisher=choose.choice(publishers),
        year=choose.randint(1974, 2026),
        pages=choose.randint(90, 720),
        isbn=f"979{number:010d}",
    )
