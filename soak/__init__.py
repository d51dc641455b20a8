"""Long checks: kills, faults, fuzzing, false alarms. `make soak` runs them all.

Their tables are in docs/campaigns/: kills-and-faults.md, fuzzing.md and false-alarms.md.
"""
