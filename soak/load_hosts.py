"""Load hosts that die, hang or lose their way to the site's database, and servers that restart.

    python -m soak.load_hosts [--case NAME] [--count N] [--seed N]

Every case is a run on two load hosts. It must be over within 60 s, with the name of the host that
failed, or done where the fault was only short; nothing may be left, and the next run must be done.
"""

import sys

from soak.kinds import Campaign

#: Kind -> repetitions in a full campaign, 50 together.
KINDS = {
    "client killed": 10,
    "pool child killed": 10,
    "load worker killed": 10,
    "cut off for 10 s": 4,
    "cut off for 120 s": 2,
    "owner killed": 4,
    "Redis restarted": 5,
    "PostgreSQL restarted": 5,
}

CAMPAIGN = Campaign("load_hosts", "soak.load_host_cases", "fault of a load host", KINDS, quick=1, lanes=1)


def main() -> int:
    options = CAMPAIGN.options(__doc__)
    return CAMPAIGN.perform(options, [options.case] if options.case else list(KINDS))


if __name__ == "__main__":
    sys.exit(main())
