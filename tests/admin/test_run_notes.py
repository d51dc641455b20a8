"""Cloning, notes, pins, saving a definition, and the history entries of each."""

from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.urls import reverse

from pgperf.models import Benchmark, Run, Workload
from pgperf.runs.definitions import freeze
from tests import factories
from tests.admin.users import staff_client
from tests.fuzz.browser import form

VIEW = ("view_run", "view_benchmark", "view_database")


def act(client: Client, page: str, pk: int, **data: Any) -> Any:
    return client.post(reverse(f"admin:pgperf_{page}", args=[pk]), data)


def history(client: Client, row: Any) -> str:
    page = reverse(f"admin:pgperf_{row._meta.model_name}_history", args=[row.pk])
    return client.get(page).content.decode()


def field(page: Any, name: str) -> str:
    """What the field of the form of notes holds."""
    (value,) = form(page.content.decode(), "notes")[name]
    return value


def notes_of(row: Any) -> list[str]:
    kind = ContentType.objects.get_for_model(row)
    entries = LogEntry.objects.filter(content_type=kind, object_id=row.pk).order_by("pk")
    return [entry.get_change_message() for entry in entries]


@pytest.fixture
def real(run: Run) -> Run:
    """The finished run with a real definition."""
    assert run.benchmark
    assert run.database
    definition = freeze(run.benchmark, run.database)
    run.definition, run.definition_hash = definition.to_json(), definition.digest()
    run.save()
    return run


class TestClone:
    def test_the_button_clones_and_redirects_to_the_clone(self, run: Run) -> None:
        definer = staff_client("definer", *VIEW, "add_benchmark")
        original = run.benchmark
        assert original
        page = definer.get(reverse("admin:pgperf_benchmark_change", args=[original.pk])).content.decode()
        assert reverse("admin:pgperf_benchmark_clone", args=[original.pk]) in page
        response = act(definer, "benchmark_clone", original.pk)
        copy = Benchmark.objects.get(name="orm-overhead-copy")
        assert response["Location"] == reverse("admin:pgperf_benchmark_change", args=[copy.pk])
        assert (copy.layers, copy.workloads) == (original.layers, original.workloads)
        entry = LogEntry.objects.get()
        assert (entry.action_flag, entry.user.get_username()) == (ADDITION, "definer")
        assert "Cloned from orm-overhead. From 127.0.0.1." in history(definer, copy)

    def test_the_action_clones_several_benchmarks(self, run: Run, admin_page: Client) -> None:
        chosen = [run.benchmark_id, factories.make_benchmark("mine").pk]
        data = {"action": "clone_selected", "_selected_action": chosen}
        admin_page.post(reverse("admin:pgperf_benchmark_changelist"), data)
        assert Benchmark.objects.filter(name__in=("orm-overhead-copy", "mine-copy")).count() == 2

    def test_requires_the_add_permission(self, run: Run) -> None:
        viewer = staff_client("viewer", *VIEW, "change_benchmark", "start_run")
        assert run.benchmark
        before = Benchmark.objects.count()
        assert act(viewer, "benchmark_clone", run.benchmark.pk).status_code == 403
        viewer.post(
            reverse("admin:pgperf_benchmark_changelist"),
            {"action": "clone_selected", "_selected_action": [run.benchmark.pk]},
        )
        assert Benchmark.objects.count() == before
        page = viewer.get(reverse("admin:pgperf_benchmark_change", args=[run.benchmark.pk])).content.decode()
        assert "/clone/" not in page

    def test_a_get_clones_nothing(self, run: Run, admin_page: Client) -> None:
        assert (
            admin_page.get(reverse("admin:pgperf_benchmark_clone", args=[run.benchmark_id])).status_code
            == 405
        )
        assert act(admin_page, "benchmark_clone", 99_999_999).status_code == 404


class TestNotes:
    def test_notes_are_saved_shown_searchable_and_logged(self, run: Run) -> None:
        notes_editor = staff_client("notes_editor", *VIEW, "change_run")
        text = "After the upgrade.\r\n<b>Slower</b> & odd: zebra"
        act(notes_editor, "run_notes", run.pk, notes=text)
        run.refresh_from_db()
        assert run.notes == text.replace("\r\n", "\n")
        page = notes_editor.get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()
        assert "&lt;b&gt;Slower&lt;/b&gt; &amp; odd" in page
        changelist = reverse("admin:pgperf_run_changelist")
        assert "After the upgrade." in notes_editor.get(changelist + "?q=zebra").content.decode()
        assert "After the upgrade." not in notes_editor.get(changelist + "?q=giraffe").content.decode()
        assert notes_of(run) == ["Changed the notes. From 127.0.0.1."]
        assert "zebra" not in history(notes_editor, run)

    @pytest.mark.parametrize("notes", ["x" * 10_001, "nul\0"])
    def test_notes_that_are_refused_stay_in_their_field(
        self, notes: str, run: Run, admin_page: Client
    ) -> None:
        page = act(admin_page, "run_notes", run.pk, notes=notes)
        assert "The notes were not saved." in page.content.decode()
        assert 'class="errorlist"' in page.content.decode()
        assert field(page, "notes") == notes
        run.refresh_from_db()
        assert run.notes == ""
        assert notes_of(run) == []

    def test_the_end_of_a_line_counts_once(self, run: Run, admin_page: Client) -> None:
        """As in the browser's field, which accepts these."""
        typed = "\n".join(["x" * 98] * 101)
        act(admin_page, "run_notes", run.pk, notes=typed.replace("\n", "\r\n"))
        run.refresh_from_db()
        assert run.notes == typed

    def test_notes_that_somebody_else_wrote_meanwhile_are_not_erased(
        self, run: Run, admin_page: Client
    ) -> None:
        seen = field(admin_page.get(reverse("admin:pgperf_run_change", args=[run.pk])), "seen")
        Run.objects.update(notes="theirs")
        page = act(admin_page, "run_notes", run.pk, notes="mine", seen=seen)
        assert "They have changed since you opened this page." in page.content.decode()
        assert '<p class="pgperf-notes">theirs</p>' in page.content.decode()
        assert field(page, "notes") == "mine"
        run.refresh_from_db()
        assert run.notes == "theirs"
        act(admin_page, "run_notes", run.pk, notes="mine", seen=field(page, "seen"))
        run.refresh_from_db()
        assert run.notes == "mine"

    def test_a_refused_text_does_not_hide_what_somebody_else_wrote(
        self, run: Run, admin_page: Client
    ) -> None:
        Run.objects.update(notes="theirs")
        page = act(admin_page, "run_notes", run.pk, notes="x" * 10_001, seen="")
        act(admin_page, "run_notes", run.pk, notes="mine", seen=field(page, "seen"))
        run.refresh_from_db()
        assert run.notes == "theirs"

    def test_a_double_click_saves_the_notes(self, run: Run, admin_page: Client) -> None:
        for _ in range(2):
            assert act(admin_page, "run_notes", run.pk, notes="mine", seen="").status_code == 302
        run.refresh_from_db()
        assert run.notes == "mine"

    def test_viewers_see_notes_but_cannot_edit_them(self, run: Run) -> None:
        Run.objects.update(notes="mind the gap")
        page = (
            staff_client("viewer", *VIEW)
            .get(reverse("admin:pgperf_run_change", args=[run.pk]))
            .content.decode()
        )
        assert "mind the gap" in page
        assert "<textarea" not in page


class TestPins:
    def test_pin_and_unpin(self, run: Run, admin_page: Client) -> None:
        act(admin_page, "run_pin", run.pk, pinned="1")
        act(admin_page, "run_pin", run.pk, pinned="1")
        run.refresh_from_db()
        assert run.pinned
        changelist = reverse("admin:pgperf_run_changelist")
        assert f"/run/{run.pk}/change/" in admin_page.get(changelist + "?pinned__exact=1").content.decode()
        act(admin_page, "run_pin", run.pk, pinned="0")
        run.refresh_from_db()
        assert not run.pinned
        assert (
            f"/run/{run.pk}/change/" not in admin_page.get(changelist + "?pinned__exact=1").content.decode()
        )
        assert notes_of(run) == ["Pinned. From 127.0.0.1.", "Unpinned. From 127.0.0.1."]

    def test_a_pin_changes_no_other_field(self, admin_page: Client) -> None:
        running = factories.make_run(Run.Status.RUNNING)
        before = Run.objects.values().get(pk=running.pk)
        act(admin_page, "run_pin", running.pk, pinned="1")
        assert Run.objects.values().get(pk=running.pk) == {**before, "pinned": True}


@pytest.mark.parametrize("page", ["run_notes", "run_pin"])
def test_notes_and_pins_require_the_change_permission(page: str, run: Run) -> None:
    others = staff_client("others", *VIEW, "start_run", "cancel_run", "export_run", "delete_run")
    assert act(others, page, run.pk, notes="x", pinned="1").status_code == 403
    assert act(staff_client("blind", "view_benchmark"), page, run.pk).status_code == 403
    notes_editor = staff_client("notes_editor", *VIEW, "change_run")
    assert notes_editor.get(reverse(f"admin:pgperf_{page}", args=[run.pk])).status_code == 405
    assert act(notes_editor, page, 99_999_999).status_code == 404
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = notes_editor.cookies
    assert act(strict, page, run.pk).status_code == 403
    run.refresh_from_db()
    assert (run.notes, run.pinned) == ("", False)


class TestDefinition:
    def test_a_run_s_definition_becomes_a_benchmark(self, real: Run) -> None:
        definer = staff_client("definer", *VIEW, "add_benchmark")
        page = definer.get(reverse("admin:pgperf_run_change", args=[real.pk])).content.decode()
        assert "Save as benchmark" in page
        response = act(definer, "run_benchmark", real.pk)
        made = Benchmark.objects.get(name="orm-overhead-copy")
        assert response["Location"] == reverse("admin:pgperf_benchmark_change", args=[made.pk])
        assert notes_of(made) == [
            f"Saved from {real}, definition {real.definition_hash[:12]}. From 127.0.0.1."
        ]

    def test_a_missing_workload_requires_the_add_workload_permission(self, real: Run) -> None:
        Workload.objects.filter(name="site-by-domain").update(title="t", sql="SELECT 2", orm="")
        definer = staff_client("definer", *VIEW, "add_benchmark")
        assert act(definer, "run_benchmark", real.pk).status_code == 403
        assert (
            act(
                staff_client("both", *VIEW, "add_benchmark", "add_workload"), "run_benchmark", real.pk
            ).status_code
            == 302
        )
        assert Workload.objects.filter(name="site-by-domain-copy").exists()

    def test_an_unusable_definition_shows_an_error(self, run: Run, admin_page: Client) -> None:
        response = admin_page.post(reverse("admin:pgperf_run_benchmark", args=[run.pk]), follow=True)
        assert "This run cannot be saved as a benchmark. workloads:" in response.content.decode()

    def test_requires_the_add_benchmark_permission(self, real: Run) -> None:
        assert act(staff_client("viewer", *VIEW, "change_run"), "run_benchmark", real.pk).status_code == 403
        assert staff_client("d", *VIEW, "add_benchmark").get(
            reverse("admin:pgperf_run_benchmark", args=[real.pk])
        ).status_code == 405  # fmt: skip


class TestHistory:
    def test_a_request_and_its_cancellation_are_logged(self, run: Run, admin_page: Client) -> None:
        token = "0" * 32
        assert run.database
        data = {"database": run.database.pk, "length": "quick", "token": token}
        act(admin_page, "benchmark_run", run.benchmark_id or 0, **data)
        asked = Run.objects.get(request_token=token)
        act(admin_page, "run_cancel", asked.pk)
        digest = asked.definition_hash[:12]
        assert notes_of(asked) == [
            f"Requested orm-overhead on demo, quick, definition {digest}. From 127.0.0.1.",
            f"Requested cancellation, definition {digest}. From 127.0.0.1.",
        ]
        assert digest in history(admin_page, asked)

    def test_downloads_are_logged(self, run: Run) -> None:
        exporter = staff_client("exporter", *VIEW, "export_run")
        exporter.get(reverse("admin:pgperf_run_download", args=[run.pk, "variants.csv"]))
        exporter.get(reverse("admin:pgperf_run_download", args=[run.pk, "nothing.csv"]))
        data = {"action": "export_variants_xlsx", "_selected_action": [run.pk]}
        exporter.post(reverse("admin:pgperf_run_changelist"), data)
        assert notes_of(run) == [
            "Exported variants.csv. From 127.0.0.1.",
            "Exported variants.xlsx. From 127.0.0.1.",
        ]
