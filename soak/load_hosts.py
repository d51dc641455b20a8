"""Load hosts that die, hang or lose their network, servers that restart, and runs that are cancelled.

    python -m soak.load_hosts [--case NAME] [--count N] [--seed N]

Every case is a run on two load hosts. It must be over within 60 s, with the name of the host that
failed, or go on where the fault was only short. A cancelled one must be over within 15 s, with its
clients on all hosts. Nothing may be left, and the next run must be done. Needs root, for a host with
a network of its own.
"""

import sys
from collections.abc import Sequence

from example.stack.network_hosts import refusal
from soak.kinds import Campaign

#: Kind -> repetitions in a full campaign, 50 together.
KINDS = {
    "client killed": 8,
    "pool child killed": 8,
    "load worker killed": 8,
    "network cut for 10 s": 4,
    "network cut for 120 s": 2,
    "owner killed": 4,
    "Redis restarted": 4,
    "PostgreSQL restarted": 4,
    "site's database restarted alone": 4,
    "cancelled": 4,
}
NEED_NETWORK = ("network cut for 10 s", "network cut for 120 s")

CAMPAIGN = Campaign("load_hosts", "soak.load_host_cases", "fault of a load host", KINDS, quick=1, lanes=1)


def main() -> int:
    options = CAMPAIGN.options(__doc__)
    return CAMPAIGN.perform(options, _possible([options.case] if options.case else list(KINDS)))


def _possible(kinds: Sequence[str]) -> list[str]:
    """Without those that need a network that can be cut, where there can be none; says so."""
    lacking = [kind for kind in kinds if kind in NEED_NETWORK] if (why := refusal()) else []
    if lacking:
        print(f"left out ({why}): {', '.join(lacking)}")
    return [kind for kind in kinds if kind not in lacking]


if __name__ == "__main__":
    sys.exit(main())
