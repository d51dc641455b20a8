"""The answers of benchmarks.verdict_matrix: records, the file that keeps them, the bar and tables."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import json_lines
from benchmarks.verdict_cells import COLUMNS, QUIET
from pgperf.analysis import verdict_kinds
from pgperf.analysis.number_text import in_percent

#: Least percentage of right verdicts in each column. With one seed, two of the eleven quiet ones may
#: be wrong, and one of the seven in another column.
BAR, QUICK_BAR = 90, 80

#: Case, column and seed.
Key = tuple[str, str, int]
#: The blocks of a cell's run. A run of one block has no interval of a part's lead.
BLOCKS = 6
#: The field `part` of lines that are no answers.
TRUTH = "truth"


@dataclass(frozen=True)
class Answer:
    """One verdict on a cell, and the result of its test ("" if there is no test).

    `right` is the one word that was fixed beforehand. `second` is the word that the verdict names
    beside its own, because that part may be as long ("": none); it does not count. `shown` is what
    shows the column's disturbance, and `lacking` what does not show: such a cell is not right,
    whatever its word. `blocks`: of the run, a condition.
    """

    case: str
    seed: int
    word: str
    evidence: str
    tested: str = ""
    test: str = ""
    right: str = ""
    column: str = QUIET
    grade: str = ""
    shown: str = ""
    lacking: str = ""
    second: str = ""
    blocks: int = 1  # of older lines, which do not say so

    @property
    def key(self) -> Key:
        return self.case, self.column, self.seed

    @property
    def is_right(self) -> bool:
        return self.word == self.right and not self.lacking

    @property
    def is_wrongly_confirmed(self) -> bool:
        """Whether a test confirmed another word. A right word without its proof is no wrong word."""
        return self.tested == "confirmed" and self.word != self.right

    def __str__(self) -> str:
        sign = "" if self.is_right else f" (WRONG, not {self.right})"
        sign = f" (NOT SHOWN: {self.lacking})" if self.lacking else sign
        word = f"{self.word} or {self.second}" if self.second else self.word
        more = [f"{self.tested}: {self.test}" if self.tested else "", self.grade, self.shown]
        where = self.case if self.column == QUIET else f"{self.case}, {self.column}"
        return "; ".join(filter(None, (f"{where} {self.seed}: {word}{sign}: {self.evidence}", *more)))


def kept(out: Path | None, blocks: int = BLOCKS) -> dict[Key, Answer]:
    """The answers that the file has of runs of so many blocks. Older lines also name words that were
    accepted; none is now.
    """
    lines = [line for line in json_lines.read(out) if line.get("part") != TRUTH]
    found = [Answer(**{name: each[name] for name in each if name != "accepted"}) for each in lines]
    return {each.key: each for each in found if each.blocks == blocks}


def keep(answer: Answer, out: Path | None) -> None:
    json_lines.append(out, asdict(answer))


def by_column(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """The answers of each column that has some, in the order of the columns."""
    found = {column: [each for each in answers if each.column == column] for column in COLUMNS}
    return {column: own for column, own in found.items() if own}


def holds(answers: Sequence[Answer], bar: int = BAR) -> bool:
    """True if there are answers, and the bar holds in every column that has some."""
    return bool(answers) and all(column_holds(own, bar) for own in by_column(answers).values())


def column_holds(answers: Sequence[Answer], bar: int = BAR) -> bool:
    """True if at least `bar` percent are right, and no wrong one is confirmed."""
    enough = 100 * sum(each.is_right for each in answers) >= bar * len(answers)
    return enough and not any(each.is_wrongly_confirmed for each in answers)


def lines(answers: Sequence[Answer], bar: int, impossible: Mapping[str, str]) -> Iterator[str]:
    """The tables of each column; of several, also right words by row, and the bar by column."""
    columns = by_column(answers)
    several = len(columns) + len(impossible) > 1
    for column, own in columns.items():
        yield from [f"Column {column}:", ""] if several else []
        yield from _verdicts(own)
        yield from ["", *_tests(own), ""]
        good = sum(each.is_right for each in own)
        yield f"{good} of {len(own)} right ({in_percent(good / len(own))})"
        yield _two_words(own)
        yield from [""] if several else []
    if several:
        yield from _rows(columns)
        yield ""
        yield from _columns(columns, bar, impossible)


def _two_words(answers: Sequence[Answer]) -> str:
    """How many name a second word, where the runs have the blocks for it."""
    if all(each.blocks == 1 for each in answers):
        return "none can name two words: a run has one block"
    two = [each for each in answers if each.second]
    first = sum(each.is_right for each in two)
    return f"{len(two)} of {len(answers)} name two words, {first} of them the right one first"


def _verdicts(answers: Sequence[Answer]) -> Iterator[str]:
    """Verdicts by bottleneck."""
    words = [word for word in verdict_kinds.words() if any(each.word == word for each in answers)]
    yield _line("bottleneck", "right", *words)
    yield "|---" * (2 + len(words)) + "|"
    for case, own in _by_case(answers).items():
        said = Counter(each.word for each in own)
        yield _line(case, own[0].right, *(said[word] or "" for word in words))


def _tests(answers: Sequence[Answer]) -> Iterator[str]:
    """The results of the tests."""
    yield _line("verdicts", "number", "confirmed", "withdrawn", "undecided", "no test")
    yield "|---" * 6 + "|"
    groups = {
        "right": [each for each in answers if each.is_right],
        "wrong": [each for each in answers if not each.is_right],
    }
    for name, found in groups.items():
        tested = Counter(each.tested for each in found)
        outcomes = (tested["confirmed"], tested["withdrawn"], tested["undecided"], tested[""])
        yield _line(name, len(found), *outcomes)


def _rows(columns: Mapping[str, Sequence[Answer]]) -> Iterator[str]:
    """Right verdicts of each row in each column."""
    yield _line("bottleneck", *columns)
    yield "|---" * (1 + len(columns)) + "|"
    for case in _by_case([each for own in columns.values() for each in own]):
        counted = [[each.is_right for each in own if each.case == case] for own in columns.values()]
        yield _line(case, *(f"{sum(good)} of {len(good)}" if good else "" for good in counted))


def _columns(columns: Mapping[str, list[Answer]], bar: int, impossible: Mapping[str, str]) -> Iterator[str]:
    heads = ("column", "right", "wrong: disturbed or unknown", "wrong: another word",
             "wrong and confirmed", "not shown", "bar")  # fmt: skip
    yield _line(*heads)
    yield "|---" * len(heads) + "|"
    for column, own in columns.items():
        wrong = [each for each in own if not each.is_right and not each.lacking]
        silent = sum(each.word in (verdict_kinds.DISTURBED, verdict_kinds.UNKNOWN) for each in wrong)
        good = sum(each.is_right for each in own)
        confirmed, lacking = sum(e.is_wrongly_confirmed for e in own), sum(bool(e.lacking) for e in own)
        held = "holds" if column_holds(own, bar) else "does NOT hold"
        yield _line(
            column,
            f"{good} of {len(own)}",
            silent,
            len(wrong) - silent,
            confirmed,
            lacking,
            f"{bar} %: {held}",
        )
    for column, why in impossible.items():
        yield _line(column, f"not possible here: {why}", *[""] * (len(heads) - 2))


def _by_case(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for each in answers:
        found.setdefault(each.case, []).append(each)
    return found


def _line(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
