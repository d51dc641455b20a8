"""What the sub-commands of `manage.py pgperf` do: one module each."""
