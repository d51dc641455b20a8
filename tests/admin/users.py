"""Users with chosen permissions."""

from django.contrib.auth.models import Permission, User
from django.test import Client


def staff_client(name: str, *codenames: str) -> Client:
    """A client logged in as a staff user with exactly these permissions of pgperf."""
    user = User.objects.create_user(name, is_staff=True)
    found = Permission.objects.filter(content_type__app_label="pgperf", codename__in=codenames)
    assert found.count() == len(set(codenames))
    user.user_permissions.set(found)
    client = Client()
    client.force_login(user)
    return client
