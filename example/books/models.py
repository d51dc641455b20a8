"""Publishers, authors and their books."""

from django.db import models


class Publisher(models.Model):
    name = models.CharField(max_length=120, unique=True)
    city = models.CharField(max_length=80)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Author(models.Model):
    name = models.CharField(max_length=120, unique=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Book(models.Model):
    title = models.CharField(max_length=200)
    author = models.ForeignKey(Author, models.PROTECT, related_name="books")
    publisher = models.ForeignKey(Publisher, models.PROTECT, related_name="books")
    year = models.PositiveSmallIntegerField()
    pages = models.PositiveSmallIntegerField()
    isbn = models.CharField("ISBN", max_length=13, unique=True)

    class Meta:
        ordering = ["title", "isbn"]

    def __str__(self) -> str:
        return self.title
