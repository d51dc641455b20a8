"""The forms take whatever a user writes in a field for free text."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Field, Model
from django.test import RequestFactory

from pgperf.models import Benchmark, Database, Pause, Workload

pytestmark = pytest.mark.django_db

FREE_TEXTS = {"title", "notes", "description", "reason"}
SENTENCE = "High load on prod (since 14:30): no runs, says O'Brien & Söhne - 100 %! "


def free_texts(model: type[Model]) -> list[Field]:
    return [field for field in model._meta.fields if field.name in FREE_TEXTS and field.editable]


@pytest.mark.parametrize("model", [Benchmark, Database, Pause, Workload])
def test_a_free_text_is_a_sentence_of_any_allowed_length(model: type[Model], rf: RequestFactory) -> None:
    request = rf.post("/")
    request.user = User(is_staff=True, is_superuser=True)
    fields = free_texts(model)
    assert fields
    for field in fields:
        text = (SENTENCE * 40)[: field.max_length or 2000].rstrip()
        form = admin.site.get_model_admin(model).get_form(request)({field.name: text})
        assert field.name not in form.errors, form.errors[field.name]
        assert form.cleaned_data[field.name] == text
