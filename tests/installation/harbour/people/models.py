"""A user model with an email login and a UUID primary key."""

import uuid
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models


class PersonManager(BaseUserManager["Person"]):
    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "Person":
        person = self.model(email=email, is_staff=True, is_superuser=True, **fields)
        person.set_password(password)
        person.save(using=self._db)
        return person


class Person(AbstractBaseUser, PermissionsMixin):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(unique=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)

    objects = PersonManager()
    USERNAME_FIELD = "email"
