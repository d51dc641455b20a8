"""Repeated, late and invalid messages, double clicks, cancel in every state, a lost broker.

    python -m soak.faults [--case NAME] [--count N] [--seed N]

Each kind of fault is one case, with its own number of repetitions; `--count` limits it. `--case
NAME` runs one kind. Random values are drawn from `--seed`.
"""

import sys

from soak.kinds import Campaign

#: Kind -> repetitions in a full campaign.
KINDS = {
    "five deliveries": 200,
    "late deliveries": 20,
    "double clicks": 50,
    "two databases": 10,
    "cancel: queued, not sent": 2,
    "cancel: queued, sent": 5,
    "cancel: claimed": 5,
    "cancel: starting clients": 5,
    "cancel: warm-up": 5,
    "cancel: in a slice": 5,
    "cancel: storing a block": 5,
    "cancel: in a diagnostic slice": 5,
    "cancel: done": 5,
    "cancel: failed": 5,
    "cancel: lost": 5,
    "cancel: cancelled": 5,
    "broker flushed": 3,
    "junk on the queue": 6,
    "web dies before it sends": 3,
    "broker silent": 3,
}

CAMPAIGN = Campaign("faults", "soak.fault_cases", "fault", KINDS, quick=2, lanes=2)


def main() -> int:
    options = CAMPAIGN.options(__doc__)
    return CAMPAIGN.perform(options, [options.case] if options.case else list(KINDS))


if __name__ == "__main__":
    sys.exit(main())
