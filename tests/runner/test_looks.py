"""The looks of a run at its precision."""

import math
from dataclasses import replace

from pgperf.analysis import stopping
from pgperf.core.records import Variant
from pgperf.runner.looks import Looks
from tests.analysis.synthetic import block, blocks, definition, variant

LIBPQ, ORM = variant("libpq"), variant("django_orm")


def us(of: Variant, number: int, round_: int) -> float:
    own = 200.0 if of == ORM else 60.0
    return own * math.exp(0.01 * math.sin(2.2 * number + (of == ORM)) + 0.001 * round_)


def test_results_after_the_last_look_count_for_the_ending() -> None:
    """The time is up in the seventh block, of which a cohort has ended."""
    asked = replace(definition(), precision=0.01)
    first = blocks([LIBPQ, ORM], 6, 5, us)
    looks = Looks(asked)
    assert looks.of_all() is None
    looks.add(first)
    assert not looks.enough(6)
    known = looks.precision
    assert known
    assert looks.of_all() == known
    late = [block(LIBPQ, 6, [60.0] * 5), block(ORM, 6, [400.0] * 5)]
    looks.add(late)
    assert looks.precision == known
    assert looks.of_all() == stopping.reached(asked, [*first, *late])
    assert looks.precision != known
