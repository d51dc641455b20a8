"""Advice on server settings, on a Database's page: from what the worker of a run stored."""

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from pgperf.access import permissions
from pgperf.core.exceptions import InvalidDefinition
from pgperf.models import Database, Run
from pgperf.reports import server_advice
from pgperf.tuning import sizes
from pgperf.tuning.advice import compared, statements
from pgperf.tuning.records import DATA_SIZES, PROFILES, STORAGE, Server


class ServerForm(forms.Form):
    """What the stored settings do not tell. Cleaned to the fields of a Server."""

    memory = forms.CharField(label=_("Memory"), max_length=20, help_text=_("16GB, for example."))
    cpus = forms.IntegerField(label=_("CPUs"), required=False)
    profile = forms.ChoiceField(label=_("Profile"), choices=lambda: server_advice.profile_titles().items())
    connections = forms.IntegerField(label=_("Connections"), required=False)
    storage = forms.ChoiceField(label=_("Storage"), choices=lambda: server_advice.storage_titles().items())
    data_size = forms.ChoiceField(
        label=_("Size of the database"), choices=lambda: server_advice.data_size_titles().items()
    )

    def server(self, version: float) -> Server:
        """The server to tune; the form must be valid. Raises InvalidDefinition by field."""
        fields = {name: value for name, value in self.cleaned_data.items() if name != "memory"}
        return Server(memory_kb=sizes.typed_kb(self.cleaned_data["memory"]), version=version, **fields)


def panel(request: HttpRequest, database: Database) -> dict[str, Any] | None:
    """What the template shows; None where the user may not see runs.

    `found` None: no run that the user may see has stored settings.
    """
    if not permissions.may_view(request.user, Run):
        return None
    found = server_advice.stored(database, permissions.visible(Run.objects.all(), request.user))
    if found is None or found.version is None:
        return {"found": None}
    given = {name: request.GET[name] for name in ServerForm.base_fields if name in request.GET}
    form = ServerForm({**_known(found), **given})
    return {"found": found, "form": form, **_advice(form, found, found.version)}


def _known(found: server_advice.StoredSettings) -> dict[str, Any]:
    memory = found.memory_kb
    host = {"memory": sizes.shown(memory) if memory else "", "cpus": found.cpus or ""}
    return {
        **host,
        "profile": PROFILES[0],
        "connections": "",
        "storage": STORAGE[0],
        "data_size": DATA_SIZES[1],
    }


def _advice(form: ServerForm, found: server_advice.StoredSettings, version: float) -> dict[str, Any]:
    if not form.is_valid():
        return {}
    try:
        server = form.server(version)
    except InvalidDefinition as refusal:
        return {"error": str(refusal)}
    findings = compared(server, found.settings, found.sources, replicates=found.replicates)
    return {
        "line": server_advice.server_line(server),
        "table": server_advice.advice_table(findings),
        "statements": statements(findings),
        "notes": server_advice.notes(server, findings),
    }
