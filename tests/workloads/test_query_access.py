"""A query without code reads only what its user may view, and no secrets, whoever asks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db.models import Field, Model

from example.books.models import Book
from pgperf.core.secret_names import is_secret_name
from pgperf.workloads import queries, query_access, secret_models
from tests.library import models as library

DEPTH = 3
START = [
    model for model in apps.get_models() if model._meta.app_label in ("library", "books", "auth", "admin")
]


@dataclass
class Viewer:
    """A user who may view every model but those of `without`; `asked` has what was asked for."""

    without: frozenset[str] = frozenset()
    asked: set[str] = field(default_factory=set)

    def has_perm(self, permission: str) -> bool:
        app, _dot, codename = permission.partition(".")
        verb, _underscore, model = codename.partition("_")
        self.asked.add(f"{app}.{model}")
        return verb == "view" and f"{app}.{model}" not in self.without


@dataclass(frozen=True)
class Path:
    """A path from a model, the models that it passes, and whether it ends at a relation."""

    model: type[Model]
    names: tuple[str, ...]
    passes: frozenset[type[Model]]
    last: Any
    single: bool  # select_related can follow it

    @property
    def text(self) -> str:
        return "__".join(self.names)

    @property
    def is_secret(self) -> bool:
        return any(secret_models.is_secret_model(model) for model in self.passes)


def inherited(model: type[Model]) -> set[type[Model]]:
    return {model, *model._meta.get_parent_list()}


def paths(model: type[Model], *, attributes: bool = False, start: Path | None = None) -> Iterator[Path]:
    """Every path of fields and relations; with `attributes` by the names that prefetch takes."""
    here = start.last.related_model if start else model
    so_far = start or Path(model, (), frozenset(inherited(model)), None, single=True)
    if len(so_far.names) == DEPTH or here is None:
        return
    for each in here._meta.get_fields():
        name = each.get_accessor_name() if attributes and hasattr(each, "get_accessor_name") else each.name
        passes = set(so_far.passes)
        if isinstance(each, Field) and each.model._meta.concrete_model is not here._meta.concrete_model:
            passes |= inherited(each.model)
        if each.is_relation and each.related_model:
            passes |= inherited(each.related_model)
            through = getattr(each if hasattr(each, "through") else each.remote_field, "through", None)
            if through and not through._meta.auto_created:
                passes.add(through)
        single = so_far.single and bool(each.many_to_one or each.one_to_one)
        path = Path(model, (*so_far.names, name), frozenset(passes), each, single)
        yield path
        if each.is_relation:
            yield from paths(model, attributes=attributes, start=path)


def label(model: type[Model]) -> str:
    return model._meta.label_lower


def assert_asks_for(query: dict[str, Any], passes: set[type[Model]] | frozenset[type[Model]]) -> None:
    user = Viewer()
    query_access.check_user(query, user)
    assert user.asked == {label(model) for model in passes}, query


def query(model: type[Model], **parts: Any) -> dict[str, Any]:
    """A query of the model whose own ordering passes no other model."""
    return {"model": model._meta.label, "fetch": "count", "ordering": ["pk"], **parts}


@pytest.mark.parametrize("model", START, ids=label)
def test_a_lookup_asks_for_every_model_that_it_passes(model: type[Model]) -> None:
    for path in paths(model):
        for suffix in ("", "__isnull", "__pk", "__exact"):
            lookup = {path.text + suffix: 1}
            assert_asks_for(query(model, lookup=lookup), inherited(model) | path.passes)


@pytest.mark.parametrize("model", START, ids=label)
def test_values_ask_for_every_model_that_they_pass(model: type[Model]) -> None:
    for path in paths(model):
        parts = {"fetch": "values_list", "values": [path.text]}
        assert_asks_for(query(model, **parts), inherited(model) | path.passes)


@pytest.mark.parametrize("model", START, ids=label)
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_ordering_asks_for_every_model_that_it_passes(model: type[Model], sign: str) -> None:
    for path in paths(model):
        expected = inherited(model) | path.passes
        if path.last.is_relation and path.last.related_model:
            expected |= ordered(path.last.related_model)
        assert_asks_for(query(model, ordering=[sign + path.text]), expected)


@pytest.mark.parametrize("model", START, ids=label)
def test_prefetched_objects_ask_for_every_model_that_they_pass(model: type[Model]) -> None:
    for path in paths(model, attributes=True):
        if path.last.is_relation:
            expected = set(inherited(model) | path.passes)
            for target in targets(path):
                expected |= ordered(target) | annotated(target)
            assert_asks_for(
                query(model, fetch="list", prefetch_related=[path.text]), expected | annotated(model)
            )


@pytest.mark.parametrize("model", START, ids=label)
def test_selected_objects_ask_for_every_model_that_they_pass(model: type[Model]) -> None:
    for path in paths(model):
        if path.last.is_relation and path.single:
            expected = inherited(model) | path.passes | annotated(model)
            assert_asks_for(query(model, fetch="list", select_related=[path.text]), expected)


def targets(path: Path) -> Iterator[type[Model]]:
    here: Any = path.model
    for name in path.names:
        here = next(
            each
            for each in here._meta.get_fields()
            if name in (each.name, getattr(each, "get_accessor_name", lambda: None)())
        ).related_model
        if here:
            yield here


def ordered(model: type[Model] | None) -> set[type[Model]]:
    """The models that the ordering of a model passes; the tests' site orders by these only."""
    return {
        "library.Fine": {library.Card, library.Reader},
        "auth.Permission": {ContentType},
    }.get(model._meta.label if model else "", set())


def annotated(model: type[Model]) -> set[type[Model]]:
    """The models that the default manager's annotations pass."""
    counted = {library.Shelf, library.Loan, library.Reader, library.Card}
    return counted if model is library.Room else set()


@pytest.mark.parametrize("fetch", ["values_list", "count"])
def test_the_ordering_of_the_model_counts_unless_the_query_has_one(fetch: str) -> None:
    own = {"model": "library.Fine", "fetch": fetch, "values": ["euros"]}
    assert_asks_for(own, {library.Fine, library.Card, library.Reader})
    assert_asks_for({**own, "ordering": ["euros"]}, {library.Fine})
    assert_asks_for({**own, "ordering": ["?"]}, {library.Fine})


@pytest.mark.parametrize(
    "parts",
    [{"lookup": {"loans__gte": 1}}, {"ordering": ["-loans"]}, {"fetch": "values_list", "values": ["loans"]},
     {"fetch": "list"}, {"fetch": "values_list"}],
)  # fmt: skip
def test_an_annotation_of_the_default_manager_counts(parts: dict[str, Any]) -> None:
    assert_asks_for(query(library.Room, **parts), {library.Room} | annotated(library.Room))
    assert_asks_for(query(library.Room, lookup={"name": "a"}), {library.Room})


#: Each place with a path, to books.Author.
PLACES = [
    {"lookup": {"author__name": "a"}},
    {"lookup": {"author": 1}},
    {"lookup": {"author__books__pages__gt": 1}},
    {"ordering": ["-author__name"]},
    {"ordering": ["author_id"]},
    {"fetch": "values_list", "values": ["author__name"]},
    {"fetch": "list", "select_related": ["author"]},
    {"fetch": "list", "prefetch_related": ["author__books"]},
]


@pytest.mark.parametrize("parts", PLACES)
def test_a_lacking_permission_is_named_at_its_part(parts: dict[str, Any]) -> None:
    (part,) = parts.keys() - {"fetch"}
    own = query(Book, **parts)
    with pytest.raises(ValidationError) as caught:
        query_access.check_user(own, Viewer(without=frozenset({"books.author"})))
    ((where, (message,)),) = caught.value.message_dict.items()
    assert where == part
    assert message.endswith(": needs the permission to view books.Author (books.view_author).")
    query_access.check_user(own, Viewer(without=frozenset({"books.publisher"})))
    with pytest.raises(ValidationError) as caught:
        query_access.check_user(own, Viewer(without=frozenset({"books.book"})))
    assert "model" in caught.value.message_dict


def test_a_table_of_a_relation_asks_for_both_sides() -> None:
    through = {"model": "library.Reader_favourites", "fetch": "count", "ordering": ["pk"]}
    assert_asks_for(through, {library.Reader, library.Shelf})


def test_the_permission_to_change_is_enough() -> None:
    class Editor:
        def has_perm(self, permission: str) -> bool:
            return permission == "books.change_book"

    query_access.check_user(query(Book), Editor())


@pytest.mark.parametrize("model", START, ids=label)
def test_django_joins_no_table_that_was_not_asked_for(model: type[Model]) -> None:
    """Django's own resolution of each path, against what was asked for."""
    tables = {
        each._meta.db_table: each
        for each in apps.get_models(include_auto_created=True)
        if not each._meta.proxy
    }
    for path in paths(model):
        if path.last.is_relation and path.last.related_model is None:
            continue
        for part in ("lookup", "values", "ordering"):
            rows = model._base_manager.all()
            name = path.text
            rows = {
                "lookup": lambda rows=rows, name=name: rows.filter(**{f"{name}__isnull": True}),
                "values": lambda rows=rows, name=name: rows.values_list(name),
                "ordering": lambda rows=rows, name=name: rows.order_by(name),
            }[part]()
            rows.query.get_compiler("default").pre_sql_setup()
            joined = {tables[each.table_name] for each in rows.query.alias_map.values()}
            asked = inherited(model) | path.passes | ordered(path.last.related_model) | ordered(model)
            assert {each for each in joined if not each._meta.auto_created} <= asked, (part, name)


class TestSecrets:
    """`check` refuses them for everyone."""

    @pytest.mark.parametrize(
        ("parts", "words"),
        [
            ({"model": "auth.User", "lookup": {"password__startswith": "md5"}}, "auth.User.password is a secret"),
            ({"model": "admin.LogEntry", "lookup": {"user__password__gt": "a"}}, "auth.User.password is a secret"),
            ({"model": "auth.Group", "lookup": {"user__password__regex": "a"}}, "auth.User.password is a secret"),
            ({"model": "library.Card", "lookup": {"clerk__password__contains": "a"}}, "auth.User.password"),
            ({"model": "auth.User", "ordering": ["-password"]}, "auth.User.password is a secret"),
            ({"model": "auth.User", "fetch": "values_list", "values": ["password"]}, "auth.User.password"),
            ({"model": "auth.User", "fetch": "values_list"}, "objects of auth.User have the secret password"),
            ({"model": "auth.User", "fetch": "list"}, "objects of auth.User have the secret password"),
            ({"model": "auth.User", "fetch": "first"}, "objects of auth.User have the secret password"),
            ({"model": "auth.User", "fetch": "get", "lookup": {"pk": 1}}, "objects of auth.User"),
            ({"model": "library.Card", "fetch": "list", "select_related": ["clerk"]}, "objects of auth.User"),
            ({"model": "auth.Group", "fetch": "list", "prefetch_related": ["user_set"]}, "objects of auth.User"),
            ({"model": "sessions.Session"}, "no query without code may read sessions.Session"),
            ({"model": "library.EntryToken"}, "no query without code may read library.EntryToken"),
            ({"model": "library.Reader", "lookup": {"entrytoken__text": "a"}}, "may read library.EntryToken"),
            ({"model": "pgperf.Run"}, "no query without code may read pgperf.Run"),
            ({"model": "auth.Group", "lookup": {"Database_groups+__database__name": "a"}}, "may read pgperf."),
            ({"model": "library.Vault", "lookup": {"api_key": "a"}}, "library.Vault.api_key is a secret"),
            ({"model": "library.Seal", "lookup": {"by_key": "a"}}, "library.Seal.by_key is a secret"),
            ({"model": "library.Seal", "lookup": {"by_key_id": "a"}}, "library.Seal.by_key is a secret"),
            ({"model": "library.Shelf", "lookup": {"details__accessToken__startswith": "a"}}, "accessToken"),
            ({"model": "library.Shelf", "ordering": ["details__keys__secret"]}, "secret is the name of a secret"),
            ({"model": "library.Note", "fetch": "list", "prefetch_related": ["subject"]}, "lead to every model"),
        ],
    )  # fmt: skip
    def test_refused_to_everyone(self, parts: dict[str, Any], words: str) -> None:
        with pytest.raises(ValidationError) as caught:
            queries.check({"fetch": "count", **parts})
        assert words in " ".join(caught.value.messages)

    @pytest.mark.parametrize(
        "parts",
        [
            {"model": "auth.User", "lookup": {"username": "ada"}},
            {"model": "auth.User", "fetch": "values_list", "values": ["username", "email"]},
            {"model": "library.Vault", "lookup": {"token_count__gt": 1, "has_password": True}},
            {"model": "library.Seal", "lookup": {"vault__name": "a"}},
            {"model": "library.Shelf", "lookup": {"details__items__count": 1}},
            {"model": "admin.LogEntry"},
        ],
    )
    def test_accepted(self, parts: dict[str, Any]) -> None:
        queries.check({"fetch": "count", **parts})

    def test_settings_refuse_more(self, settings: Any) -> None:
        settings.PGPERF = {
            "REFUSED_MODELS": ["library.loan", "books.*"],
            "REFUSED_FIELDS": ["library.Reader.name"],
        }
        for parts in (
            {"model": "library.Loan"},
            {"model": "library.Reader", "lookup": {"shelves__name": "a"}},
            {"model": "library.Reader", "lookup": {"name": "a"}},
            {"model": "library.Reader", "fetch": "list"},
            {"model": "library.Card", "ordering": ["reader__name"]},
            {"model": "books.Book"},
        ):
            with pytest.raises(ValidationError):
                queries.check({"fetch": "count", **parts})
        queries.check({"model": "library.Shelf", "fetch": "count"})

    @pytest.mark.parametrize("model", [User])
    def test_every_path_to_a_password_is_refused(self, model: type[Model]) -> None:
        for start in START:
            for path in paths(start):
                if path.last.is_relation and path.last.related_model is model:
                    with pytest.raises(ValidationError):
                        query_access.check_secrets(query(start, lookup={f"{path.text}__password__lt": "a"}))

    @pytest.mark.parametrize(
        ("name", "secret"),
        {
            "password": True, "new_password": True, "password_hash": True, "Password": True, "apiKey": True,
            "api_keys": True, "client_secret": True, "refresh_token": True, "token_digest": True, "otp": True,
            "session_key": True, "recovery_codes": True, "private-key": True, "key": False, "token_count": False,
            "tokenized": False, "secretary": False, "passworded": False, "keyboard": False, "title": False,
        }.items(),
    )  # fmt: skip
    def test_names(self, name: str, secret: bool) -> None:
        assert is_secret_name(name) == secret
