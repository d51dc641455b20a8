"""The long checks: kills, fuzzing, false alarms. `make soak` runs them all; docs/reliability.md has their tables."""
