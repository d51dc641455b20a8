"""Uses pgperf's pages as people do whose users and groups live in another database than pgperf's rows.

Run by the site's own Python in its directory; every assertion is a page that works.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "harbour.settings")
import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.contrib.auth.models import Group  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import reverse  # noqa: E402

from pgperf.fields import group_ids  # noqa: E402
from pgperf.models import Database, Run  # noqa: E402

people = get_user_model()._default_manager
boss = people.get(email="boss@harbour.example")
group = Group.objects.create(name="pilots")
client = Client(raise_request_exception=True)
client.force_login(boss)

# A database that only the pilots may see.
database = Database.objects.get()
form = {
    "name": database.name,
    "dbname": database.dbname,
    "credential": database.credential,
    "groups": [group.pk],
}
targets = {"targets-TOTAL_FORMS": 0, "targets-INITIAL_FORMS": 0}
address = reverse("ops:pgperf_database_change", args=[database.pk])
assert client.post(address, {**form, **targets}).status_code == 302, client.post(
    address, form
).content.decode()
assert group_ids(database) == [group.pk]
assert "pilots" in client.get(address).content.decode()

# Who asked for a run is seen, and forgotten with the person.
clerk = people.create_superuser(email="clerk@harbour.example", password="x")
run = Run.objects.first()
Run.objects.filter(pk=run.pk).update(requested_by=clerk.pk)
assert "clerk@harbour.example" in client.get(reverse("ops:pgperf_run_changelist")).content.decode()
person = reverse("ops:people_person_delete", args=[clerk.pk])
assert client.post(person, {"post": "yes"}).status_code == 302
assert not people.filter(pk=clerk.pk).exists()
run.refresh_from_db()
assert run.requested_by_id is None

# A group that goes leaves nothing behind.
assert client.post(reverse("ops:auth_group_delete", args=[group.pk]), {"post": "yes"}).status_code == 302
assert group_ids(database) == []
