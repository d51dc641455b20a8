"""Cautions on answers over HTTP that may be another page than the one that was asked for."""

from typing import Any

from django.utils.translation import gettext as _

from pgperf.analysis import page_lengths
from pgperf.analysis.http_requests import HttpRequests
from pgperf.analysis.page_lengths import Lengths, OtherLength
from pgperf.core.layers import VIEW_LAYER
from pgperf.core.records import ANSWER, answer_of, with_workloads
from pgperf.reports import number_format
from pgperf.reports.labels import layer_title, variant_title
from pgperf.reports.run_rows import RunRows


def cautions(rows: RunRows) -> list[str]:
    """One for each variant whose answers have another length than the page."""
    without_body = {work["name"] for work in _workloads(rows) if _method(work) == "HEAD"}
    requests = {
        row.identity: found
        for row in rows.originals
        if row.workload not in without_body and (found := HttpRequests.from_json(row.http))
    }
    return [_sentence(each) for each in page_lengths.others(requests, _of_views(rows))]


def _of_views(rows: RunRows) -> dict[str, Lengths]:
    """By workload. Of several, older versions stored one answer, without its workload."""
    layer = rows.run.environment.get("layers", {}).get(VIEW_LAYER, {})
    several = len(_workloads(rows)) > 1
    names = {row.workload for row in rows.originals}
    answers = {name: layer.get(answer_of(name) if several else ANSWER, "") for name in names}
    return {name: found for name, answer in answers.items() if (found := Lengths.of_view(answer))}


def _workloads(rows: RunRows) -> list[dict[str, Any]]:
    return list(with_workloads(rows.run.definition)["workloads"])


def _method(work: dict[str, Any]) -> str:
    return str((work.get("page") or {}).get("method", ""))


def _sentence(found: OtherLength) -> str:
    expected = variant_title(found.of) if found.of else layer_title(VIEW_LAYER)
    return _(
        "%(variant)s: the body has %(bytes)s bytes, and %(expected)s in %(other)s. It may be another page, such as a"
        " login form, an error or a maintenance page."
    ) % {
        "variant": variant_title(found.variant),
        "bytes": _range(found.lengths),
        "expected": _range(found.expected),
        "other": expected,
    }


def _range(lengths: Lengths) -> str:
    ends = dict.fromkeys((lengths.least, lengths.most))
    return _(" to ").join(number_format.whole(end) for end in ends)
