"""pgperf: where each microsecond of a Django database call goes."""

__version__ = "0.1.0"
