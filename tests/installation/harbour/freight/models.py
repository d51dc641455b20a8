"""The models of the site, stored in PostgreSQL."""

from django.db import models


class Parcel(models.Model):
    number = models.CharField(max_length=20, unique=True)

    def __str__(self) -> str:
        return self.number
