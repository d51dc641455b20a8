"""Uses pgperf's pages while users and groups are in another database than pgperf's rows.

Run it by the site's Python in the site's directory.
"""

import json
import os
import uuid

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "harbour.settings")
import django

django.setup()

from django.contrib.admin.models import LogEntry  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.contrib.auth.models import Group  # noqa: E402
from django.core.files.uploadedfile import SimpleUploadedFile  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import reverse  # noqa: E402

from pgperf.access.permissions import may_see  # noqa: E402
from pgperf.analysis.verdict import Verdict  # noqa: E402
from pgperf.db.fields import group_ids  # noqa: E402
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

# An export can be imported, with its groups by name, and the history names the user.
exported = client.post(reverse("ops:pgperf_database_export"), {"format": "json", "chosen": ""}).content
(definition,) = json.loads(exported)
assert definition["groups"] == ["pilots"]
for groups in ([], ["pilots"]):
    changed = json.dumps([{**definition, "groups": groups}]).encode()
    upload = SimpleUploadedFile("databases.json", changed)
    assert client.post(reverse("ops:pgperf_database_import"), {"import_file": upload}).status_code == 302
    assert group_ids(database) == ([group.pk] if groups else [])
    noted = LogEntry.objects.latest("pk")
    assert (noted.user, noted.object_id) == (boss, str(database.pk))
    assert "Imported from 'databases.json': changed groups." in noted.get_change_message()

# The page names the user who requested a run, until that user is deleted.
clerk = people.create_superuser(email="clerk@harbour.example", password="x")
run = Run.objects.first()
Run.objects.filter(pk=run.pk).update(requested_by=clerk.pk)
assert "clerk@harbour.example" in client.get(reverse("ops:pgperf_run_changelist")).content.decode()
person = reverse("ops:people_person_delete", args=[clerk.pk])
assert client.get(person).status_code == 200
run.refresh_from_db()
assert run.requested_by_id == clerk.pk, "the page that asks first deletes nothing"
assert client.post(person, {"post": "yes"}).status_code == 302
assert not people.filter(pk=clerk.pk).exists()
run.refresh_from_db()
assert run.requested_by_id is None

# A user tests a verdict and cancels the test run; both are logged with the user.
variant = run.variants.filter(layer="django_orm", control=0)[0]
variant.verdict = Verdict("client_cpu", "likely", intervention="lower_layer").to_json()
variant.save()
form = {"variant": variant.label, "token": uuid.uuid4().hex}
assert client.post(reverse("ops:pgperf_run_confirm", args=[run.pk]), form).status_code == 302
test = Run.objects.get(confirms=run)
assert test.requested_by == boss
assert client.post(reverse("ops:pgperf_run_cancel", args=[test.pk])).status_code == 302
test.refresh_from_db()
assert test.cancel_requested

# A deleted group leaves no rows behind, and opens nothing.
clerk = people.create(email="clerk@harbour.example")
pilot = people.create(email="pilot@harbour.example")
pilot.groups.add(group)
assert may_see(pilot, run)
assert not may_see(clerk, run)
address = reverse("ops:auth_group_delete", args=[group.pk])
assert client.get(address).status_code == 200
assert group_ids(database) == [group.pk], "the page that asks first deletes nothing"
assert client.post(address, {"post": "yes"}).status_code == 302
assert group_ids(database) == []
database.refresh_from_db()
assert database.restricted
for person in (clerk, pilot):
    assert not may_see(person, database)
    assert not may_see(person, run)
assert may_see(boss, run)
database.delete()
assert not may_see(clerk, run)
