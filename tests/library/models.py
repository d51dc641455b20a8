# ruff: noqa: DJ008
"""Models with relations of every kind: forward, reverse, through a model, generic, inherited."""

from typing import Any

from django.conf import settings
from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models import F


class Note(models.Model):
    text = models.TextField()
    content_type = models.ForeignKey(ContentType, models.CASCADE)
    object_id = models.PositiveIntegerField()
    subject = GenericForeignKey()


class Shelf(models.Model):
    name = models.CharField(max_length=50)
    details = models.JSONField(default=dict)
    notes = GenericRelation(Note, related_query_name="shelf")


class LockedShelf(Shelf):
    since = models.DateField()


class OldShelf(Shelf):
    class Meta:
        proxy = True


class Reader(models.Model):
    name = models.CharField(max_length=50)
    friends = models.ManyToManyField("self")
    shelves = models.ManyToManyField(Shelf, through="Loan", related_name="readers")
    favourites = models.ManyToManyField(Shelf, related_name="fans")


class Loan(models.Model):
    reader = models.ForeignKey(Reader, models.CASCADE)
    shelf = models.ForeignKey(Shelf, models.CASCADE, related_name="loans")
    returned = models.DateField(null=True)


class Card(models.Model):
    reader = models.OneToOneField(Reader, models.CASCADE)
    number = models.CharField(max_length=20)
    clerk = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)


class Fine(models.Model):
    card = models.ForeignKey(Card, models.CASCADE)
    euros = models.IntegerField()

    class Meta:
        ordering = ["card__reader__name", F("euros").desc()]


class Room(models.Model):
    name = models.CharField(max_length=50)
    shelf = models.ForeignKey(Shelf, models.CASCADE, related_name="rooms")

    class Counted(models.Manager[Any]):
        def get_queryset(self) -> models.QuerySet[Any]:
            return super().get_queryset().annotate(loans=models.Count("shelf__loans__reader__card"))

    objects = Counted()


class Vault(models.Model):
    """Secrets by their names, by the class of a field, and by a foreign key to one."""

    name = models.CharField(max_length=50)
    password = models.CharField(max_length=50)
    api_key = models.CharField(max_length=50, unique=True)
    token_count = models.IntegerField(default=0)
    has_password = models.BooleanField(default=False)


class Seal(models.Model):
    vault = models.ForeignKey(Vault, models.CASCADE)
    by_key = models.ForeignKey(Vault, models.CASCADE, to_field="api_key", related_name="sealed")


class EntryToken(models.Model):
    text = models.CharField(max_length=50)
    reader = models.ForeignKey(Reader, models.CASCADE)
