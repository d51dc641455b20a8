"""Clients with different permissions, and a site with one finished run."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from pgperf.models import Run
from tests import factories

VIEW = tuple(
    f"view_{model}" for model in ("benchmark", "database", "workload", "run", "schedule", "worker", "pause")
)

#: Role -> permissions.
ROLES: dict[str, tuple[str, ...]] = {
    "staff": (),
    "viewer": VIEW,
    "runner": (*VIEW, "start_run"),
    "canceller": (*VIEW, "cancel_run"),
    "exporter": (*VIEW, "export_run"),
    "definer": (*VIEW, "add_benchmark", "change_benchmark"),
    "start_only": ("start_run", "cancel_run", "export_run"),
}


@pytest.fixture
def client_of(db: None) -> Callable[[str], Client]:
    """A client logged in as a role: one of ROLES, "superuser", "customer" (not staff) or
    "anonymous".
    """

    def log_in(role: str) -> Client:
        client = Client()
        if role != "anonymous":
            staff = role != "customer"
            user = User.objects.create_user(role, is_staff=staff, is_superuser=role == "superuser")
            codenames = ROLES.get(role, ())
            user.user_permissions.set(
                Permission.objects.filter(content_type__app_label="pgperf", codename__in=codenames)
            )
            client.force_login(user)
        return client

    return log_in


@pytest.fixture
def admin_page(client_of: Callable[[str], Client]) -> Client:
    return client_of("superuser")


@pytest.fixture
def run(db: None) -> Run:
    factories.make_worker()
    return factories.make_results(factories.make_run())
