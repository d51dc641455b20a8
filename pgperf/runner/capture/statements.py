"""Captures the statements of a site workload from the wire, so that lower layers can run them.

An ORM client, or a view's for a page, runs the operation twice, warm, behind a wire proxy. If both
runs sent the same statements, and these only read, they become the workload's statements. Otherwise
the refusal says why, and only the ORM, or the page from the view upwards, is measured. Then each
lower layer runs the statements once behind the proxy, and must send as many statements and receive
as many rows.

The site's values stay in this process's memory. Everything that is shown or stored has them masked.
"""

import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import zip_longest
from typing import Any
from uuid import UUID

from pgperf.core import layers, protocol, sql_parameters
from pgperf.core.exceptions import ClientFailed, InvalidDefinition, WriteRefused
from pgperf.core.records import Definition, LeftOut, Plan, Route, WorkloadDefinition
from pgperf.core.sql_masking import Effect, effect, masked
from pgperf.install import launch
from pgperf.runner import authentication, client_process, client_spec
from pgperf.runner.capture import refused_writes
from pgperf.runner.capture.pg_messages import ExecutedStatement
from pgperf.runner.capture.wire_proxy import RecordedOperation, WireProxy
from pgperf.runner.memory import MIB

_TIMEOUT_S = 60.0
_WARM_UP_OPS = 20
_ONCE = protocol.Slice(seq=2, lead_in_ops=0, lead_in_ns=0, count=1)
_MOST_STATEMENTS = 1000
#: Of them in a client's order, beside which everything else has room.
_MOST_BYTES = protocol.MAX_LINE_BYTES - 256 * 1024
#: Statements with different texts of one operation that are explained.
MOST_TEXTS = 50


@dataclass(frozen=True)
class OperationWork:
    """The work of a layer in one operation: its statements, masked, and the rows of each."""

    texts: tuple[str, ...]
    rows: tuple[int, ...]

    def difference(self, other: "OperationWork") -> str:
        """How the other work differs, in a few words; "" if the numbers of statements and rows are
        equal.
        """
        if len(self.texts) != len(other.texts):
            return f"{len(other.texts)} statements instead of {len(self.texts)}"
        if sum(self.rows) != sum(other.rows):
            return f"{sum(other.rows)} rows instead of {sum(self.rows)}"
        return ""

    def to_json(self) -> dict[str, Any]:
        rows = [*self.rows, *[0] * len(self.texts)]
        each = [{"sql": text, "rows": count} for text, count in zip(self.texts, rows, strict=False)]
        return {"statements": len(self.texts), "rows": sum(self.rows), "each": each}


@dataclass(frozen=True)
class Capture:
    """The capture of one workload.

    `refusal`: why lower layers cannot run its statements; "" if they can. Those of a page that is
    `stopped` cannot.
    """

    workload: WorkloadDefinition
    work: OperationWork
    refusal: str = ""
    stopped: str = ""  # why a page cannot run inside a client; "" if it can
    note: str = ""  # what pages say about the captured statements
    plans: Mapping[str, list[str]] = field(default_factory=dict)  # lines of EXPLAIN by masked text
    bound: bool = True  # do drivers bind the values like Django? If not, they send the bytes unchanged
    differences: tuple[LeftOut, ...] = ()  # the layers whose work differs from the ORM's
    #: Those of its statements that read, with their values, by masked text; they stay in memory.
    reads: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to_json(self) -> dict[str, Any]:
        """As JSON, without values."""
        return {
            **self.work.to_json(),
            "refusal": self.refusal,
            "note": self.note,
            "plans": dict(self.plans),
            "bound": self.bound,
            "unlike": [each.to_json() for each in self.differences],
        }

    def skipped(self) -> tuple[LeftOut, ...]:
        """The variants of the workload that cannot be measured."""
        name = self.workload.name
        above = (
            (LeftOut(workload=name, layer=layers.VIEW_LAYER, reason=self.stopped),) if self.stopped else ()
        )
        if self.refusal:
            return (*above, LeftOut(workload=name, reason=self.refusal))
        return self.differences


@dataclass(frozen=True)
class CaptureSettings:
    """The inputs of a capture beside the definition."""

    route: Route
    build_dir: str
    interpreters: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = 0  # that a client may take for its operations; 0: no limit


def are_captured(plan: Plan) -> bool:
    """Has the plan workloads of the site, and layers that would run their statements?"""
    connecting = any(layers.connects(variant.layer) for variant in plan.variants)
    return connecting and any(work.is_site for work in plan.definition.workloads)


def of_definition(
    definition: Definition, settings: CaptureSettings, skipped: Sequence[LeftOut]
) -> list[Capture]:
    """A capture of each of the definition's workloads that are the site's own.

    Raises like `captured`.
    """
    works = (work for work in definition.workloads if work.is_site)
    return [captured(definition, work, settings, skipped) for work in works]


def filled(definition: Definition, captures: Sequence[Capture]) -> Definition:
    """The definition with the statements of its captures."""
    works = {capture.workload.name: capture.workload for capture in captures}
    return replace(definition, workloads=tuple(works.get(work.name, work) for work in definition.workloads))


def captured(
    definition: Definition, work: WorkloadDefinition, settings: CaptureSettings, skipped: Sequence[LeftOut]
) -> Capture:
    """Capture a site workload, and check it on every lower layer of the definition that is not
    `skipped`.

    Raises a PgperfError if the operation itself fails.
    """
    try:
        found = capture(definition, work, settings)
    except ClientFailed as error:
        if not work.page:
            raise
        return Capture(work, OperationWork((), ()), str(error), stopped=str(error))
    if found.stopped:
        return found
    differences = () if found.refusal else _differences(definition, found, settings, skipped)
    return replace(found, differences=differences, plans=_plans(definition, found, settings))


def _differences(
    definition: Definition, found: Capture, settings: CaptureSettings, skipped: Sequence[LeftOut]
) -> tuple[LeftOut, ...]:
    """The lower layers whose work differs from the ORM's."""
    work, several = found.workload, len(definition.modes) > 1
    return tuple(
        LeftOut(workload=work.name, layer=layer, mode=mode if several else "", reason=why)
        for layer, mode in _lower(definition, skipped)
        if (why := _difference_of(definition, found, layer, mode, settings))
    )


def _plans(definition: Definition, found: Capture, settings: CaptureSettings) -> dict[str, list[str]]:
    """The server's plans of those of an operation's statements that read, values masked.

    One that the server refuses has none. It ends the client, so another one explains the others.
    """
    several = len(found.work.texts) > 1
    waiting = dict(list(found.reads.items())[:MOST_TEXTS]) if several else {}
    plans: dict[str, list[str]] = {}
    while count := len(waiting):
        with (
            suppress(ClientFailed),
            _behind_proxy(definition, found.workload, _top(found.workload), "simple", settings) as (
                client,
                _,
            ),
        ):
            _explain(client, waiting, plans)
        if len(waiting) == count:
            break  # the client does not start
    return plans


def _explain(
    client: client_process.ClientProcess, waiting: dict[str, str], plans: dict[str, list[str]]
) -> None:
    """Move statements that wait to the plans. Raises ClientFailed at one that the server refuses."""
    for text in list(waiting):
        client.send(protocol.Query(f"EXPLAIN (COSTS OFF) {waiting.pop(text)}"))
        lines = client.expect(protocol.Rows, _TIMEOUT_S).rows
        plans[text] = _masked_plan(line[0] or "" for line in lines)


def _masked_plan(lines: Iterable[str]) -> list[str]:
    """With ? for its values, which may have several lines."""
    return masked("\n".join(lines)).split("\n")


def _top(work: WorkloadDefinition) -> str:
    """The layer whose client runs the operation as a whole."""
    return layers.VIEW_LAYER if work.page else layers.ORM_LAYER


def capture(definition: Definition, work: WorkloadDefinition, settings: CaptureSettings) -> Capture:
    """Run the operation warm, twice, in simple mode, and in an extended one if the definition has
    any.
    """
    extended = next((mode for mode in definition.modes if mode != "simple"), "")
    simple, traced = _twice(definition, work, "simple", settings)
    one_capture = bool(work.page and work.page.one_capture)
    note = _note(simple) if one_capture else ""
    found = partial(Capture, work=_work_of(simple[-1]), note=note, reads=_reads(simple[-1]))
    stopped = _writes(work, simple)
    if refusal := stopped or refusal_of(simple, one_capture):
        return found(work, refusal=refusal, stopped=stopped, bound=False)
    if not extended:
        return _replayed(found, work, *merged(simple[-1], (), traced))
    other, _ = _twice(definition, work, extended, settings)
    stopped = _writes(work, other)
    refusal = stopped or refusal_of(other, one_capture) or _counts_differ(simple[-1], other[-1])
    if not refusal:
        try:
            return _replayed(found, work, *merged(simple[-1], other[-1].executed, traced))
        except InvalidDefinition as error:
            refusal = str(error)
    return found(work, refusal=refusal, stopped=stopped, bound=False)


def _reads(recorded: RecordedOperation) -> dict[str, str]:
    """The statements that only read, with their values, by masked text."""
    return {masked(each.text): each.text for each in recorded.executed if effect(each.text) == Effect.READS}


def _replayed(
    found: Callable[..., Capture],
    work: WorkloadDefinition,
    statements: tuple[protocol.Statement, ...],
    bound: bool,
) -> Capture:
    """The capture with the statements that the lower layers send, unless no client reads as much."""
    size = len(protocol.encode(protocol.Spec(statements=list(statements))))
    if size > _MOST_BYTES:
        refusal = (
            f"the statements of one operation take {size / MIB:.1f} MiB in a client's order;"
            f" up to {_MOST_BYTES / MIB:.1f} MiB can be replayed"
        )
        return found(work, refusal=refusal, bound=False)
    return found(replace(work, statements=statements), bound=bound)


def _note(twice: Sequence[RecordedOperation]) -> str:
    """How the values of two requests differ; "" if they do not."""
    changes = difference(*(recorded.executed for recorded in twice))
    return (
        f"values change from request to request, so the layers below send those of one: {changes}"
        if changes
        else ""
    )


def _writes(work: WorkloadDefinition, twice: Sequence[RecordedOperation]) -> str:
    """How a page writes, though its view does not mind the server's refusal; "" if it does not, and
    for what is no page.
    """
    for recorded in twice if work.page else ():
        for refused in recorded.refused:
            return refused_writes.by_server(work, refused)
        for each in recorded.executed:
            if effect(each.text) == Effect.WRITES:
                return refused_writes.by_words(work, each.text)
    return ""


def refusal_of(twice: Sequence[RecordedOperation], one_capture: bool = False) -> str:
    """Why the statements of two recorded operations cannot be replayed; "" if they can.

    With `one_capture`, the values of the two may differ.
    """
    if any(recorded.connections > 1 for recorded in twice):
        return "the operation uses several connections to the database, and the statements of only one can be replayed"
    first, second = (recorded.executed for recorded in twice)
    if not first and not second:
        return "the operation sends no statement once it is warm"
    if len(first) > _MOST_STATEMENTS:
        return f"one operation sends {len(first)} statements; up to {_MOST_STATEMENTS} can be replayed"
    for number, statement in enumerate(first, 1):
        if (does := effect(statement.text)) != Effect.READS:
            return f"statement {number} of {len(first)} {does}: {masked(statement.text)}"
    return difference(*map(_without_values, (first, second))) if one_capture else difference(first, second)


def _without_values(executed: Sequence[ExecutedStatement]) -> list[ExecutedStatement]:
    return [ExecutedStatement(masked(each.text), each.simple, oids=each.oids) for each in executed]


def difference(first: Sequence[ExecutedStatement], second: Sequence[ExecutedStatement]) -> str:
    """How two captures of one operation differ, values masked; "" if they are the same byte for
    byte.
    """
    for number, (one, other) in enumerate(zip_longest(first, second), 1):
        if one == other:
            continue
        texts = ["nothing" if each is None else masked(each.text) for each in (one, other)]
        if texts[0] == texts[1]:
            detail = f"statement {number} has other values each time: {texts[0]}"
        else:
            detail = f"statement {number} is once: {texts[0]}; and then: {texts[1]}"
        counts = f"{len(first)} statements, then {len(second)}; " if len(first) != len(second) else ""
        return f"two operations did not send the same ({counts}{detail})"
    return ""


def merged(
    simple: RecordedOperation, extended: Sequence[ExecutedStatement], traced: Sequence[protocol.Statement]
) -> tuple[tuple[protocol.Statement, ...], bool]:
    """The statements in every form, and whether drivers can bind all of their values.

    They can if the text and the arguments of Django's cursor produce the bytes that were on the
    wire.
    """
    given = (
        traced
        if len(traced) == len(simple.executed)
        else [protocol.Statement(args=None)] * len(simple.executed)
    )
    statements = [
        _merged(one, other, cursor) for one, other, cursor in zip_longest(simple.executed, extended, given)
    ]
    return tuple(statements), all(statement.args is not None for statement in statements)


def _merged(
    one: ExecutedStatement, other: ExecutedStatement | None, cursor: protocol.Statement
) -> protocol.Statement:
    bound = (
        cursor if cursor.args is not None and _produces(cursor, one.text) else protocol.Statement(args=None)
    )
    extended = other or ExecutedStatement(one.text, simple=False)
    return protocol.Statement(
        sql=bound.sql,
        args=bound.args,
        literal=one.text,
        numbered=extended.text,
        args_text=[
            as_text(*each) for each in zip(extended.params, extended.formats, extended.oids, strict=True)
        ],
        arg_oids=list(extended.oids),
    )


def _produces(cursor: protocol.Statement, text: str) -> bool:
    try:
        return sql_parameters.literal(cursor.sql, cursor.args or []) == text
    except InvalidDefinition:
        return False


#: Binary formats that can be decoded: OID of the type -> struct format.
_NUMBERS = {20: "!q", 21: "!h", 23: "!i", 26: "!I", 700: "!f", 701: "!d"}
_TEXTUAL = (25, 1043, 1042, 19, 705, 114)
_EPOCH = datetime(2000, 1, 1)


def as_text(value: bytes | None, form: int, oid: int) -> str | None:
    """A parameter in PostgreSQL's text format.

    Raises InvalidDefinition for a binary value of another type.
    """
    if value is None:
        return None
    if form == 0 or oid in _TEXTUAL:
        return value.decode()
    try:
        return _from_binary(value, oid)
    except (KeyError, ValueError, struct.error, OverflowError):
        raise InvalidDefinition(
            f"a parameter of the type with number {oid} goes in binary format, which is not replayed"
        ) from None


def _from_binary(value: bytes, oid: int) -> str:
    match oid:
        case 16:
            return "t" if struct.unpack("!?", value)[0] else "f"
        case 1082:
            return (_EPOCH + timedelta(days=struct.unpack("!i", value)[0])).date().isoformat()
        case 1114 | 1184:
            moment = _EPOCH + timedelta(microseconds=struct.unpack("!q", value)[0])
            return moment.isoformat(" ") + ("+00" if oid == 1184 else "")
        case 2950:
            return str(UUID(bytes=value))
        case _:
            return repr(struct.unpack(_NUMBERS[oid], value)[0])


def _lower(definition: Definition, skipped: Sequence[LeftOut]) -> Iterator[tuple[str, str]]:
    for layer in definition.layers:
        for mode in definition.modes:
            if (
                layers.connects(layer)
                and layers.runs_statements(layer)
                and not any(each.covers_layer(layer, mode) for each in skipped)
            ):
                yield layer, mode


def _difference_of(
    definition: Definition, found: Capture, layer: str, mode: str, settings: CaptureSettings
) -> str:
    """How the layer's work differs from the ORM's; "" if it does not."""
    try:
        with _behind_proxy(definition, found.workload, layer, mode, settings) as (client, proxy):
            _run(client, _ONCE)
            proxy.reset()
            _run(client, _ONCE)
            done = _work_of(proxy.recorded())
    except ClientFailed as error:
        return f"it cannot run the captured statements: {error}"
    why = found.work.difference(done)
    return f"it does not do the same work: {why}" if why else ""


def _twice(
    definition: Definition, work: WorkloadDefinition, mode: str, settings: CaptureSettings
) -> tuple[list[RecordedOperation], list[protocol.Statement]]:
    """Two warm operations of the ORM or the view as recorded on the wire, and the arguments of the
    cursor in the second. The first has the writes that were refused before, too.
    """
    with _behind_proxy(definition, work, _top(work), mode, settings) as (client, proxy):
        _warm_up(client)
        early = tuple(proxy.refused)
        operations, traced = [], protocol.Traced([])
        for _ in range(2):
            proxy.reset()
            client.send(protocol.Trace())
            traced = client.expect(protocol.Traced, _TIMEOUT_S)
            operations.append(proxy.recorded())
    first, second = operations
    return [replace(first, refused=(*early, *first.refused)), second], traced.statements


def _warm_up(client: client_process.ClientProcess) -> None:
    """Run the operation until its caches are full: 21 times, or fewer that take half the deadline."""
    begin = time.monotonic()
    _run(client, _ONCE)
    fit = int(_TIMEOUT_S / 2 / max(time.monotonic() - begin, 1e-6))
    if fit > 1:
        _run(client, _ONCE._replace(lead_in_ops=min(_WARM_UP_OPS, fit) - 1))


def _run(client: client_process.ClientProcess, operations: protocol.Slice) -> None:
    client.send(operations)
    client.read_bytes(client.expect(protocol.SliceReply, _TIMEOUT_S).nbytes, _TIMEOUT_S)


@contextmanager
def _behind_proxy(
    definition: Definition, work: WorkloadDefinition, layer: str, mode: str, settings: CaptureSettings
) -> Iterator[tuple[client_process.ClientProcess, WireProxy]]:
    """A client of the layer, ready, connected through a wire proxy."""
    variant = client_spec.single(definition, work, layer, mode, settings.route)
    alone = replace(definition, workloads=(work,))
    argv = launch.command(layer, settings.build_dir, settings.interpreters)
    authentication.check(settings.route)
    with WireProxy(settings.route) as proxy:
        name = f"{layer} of {work.name}, captured"
        process_environment = client_spec.process_environment(work, layer)
        with client_process.ClientProcess(name, argv, settings.route.password, process_environment) as client:
            spec = client_spec.spec(
                alone, variant, proxy.route, "pgperf-capture", False, client.spawned_ns, settings.memory_bytes
            )
            client.send(spec)
            try:
                client.expect(protocol.Ready, _TIMEOUT_S)
                yield client, proxy
            except ClientFailed as error:
                proxy.check()
                if proxy.refused:
                    reason = refused_writes.by_server(work, proxy.refused[0])
                    raise WriteRefused(reason, error.sqlstate) from error
                raise


def _work_of(recorded: RecordedOperation) -> OperationWork:
    return OperationWork(tuple(masked(each.text) for each in recorded.executed), recorded.rows)


def _counts_differ(simple: RecordedOperation, extended: RecordedOperation) -> str:
    if len(simple.executed) == len(extended.executed):
        return ""
    return (
        f"in simple mode one operation sends {len(simple.executed)} statements, with arguments apart"
        f" {len(extended.executed)}"
    )
