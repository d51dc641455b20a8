"""Suspended processes, a full disk, a standby as target, limits of a control group.

    python -m soak.outages [--case NAME] [--count N] [--seed N]

Each kind is one case on one site, because the cases wait more than they work. Needs root, to mount
a small file system and to write limits of control groups.
"""

import os
import sys

from soak.kinds import Campaign

#: Kind -> repetitions in a full campaign.
KINDS = {
    "Redis suspended": 1,
    "worker suspended": 1,
    "measuring process suspended": 1,
    "hot standby": 2,
    "disk full": 2,
    "too few processes": 4,
    "too little memory": 2,
}
NEED_ROOT = ("disk full", "too few processes", "too little memory")


CAMPAIGN = Campaign("outages", "soak.outage_cases", "outage", KINDS, quick=1, lanes=1)


def main() -> int:
    options = CAMPAIGN.options(__doc__)
    return CAMPAIGN.perform(options, _possible([options.case] if options.case else list(KINDS)))


def _possible(kinds: list[str]) -> list[str]:
    """Without those that only root can cause; says which are left out."""
    if os.geteuid() == 0:
        return kinds
    print(f"left out, because they need root: {', '.join(kind for kind in kinds if kind in NEED_ROOT)}")
    return [kind for kind in kinds if kind not in NEED_ROOT]


if __name__ == "__main__":
    sys.exit(main())
