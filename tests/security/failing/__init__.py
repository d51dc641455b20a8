"""An app that makes a worker fail in the middle of a run, with the password on everybody's lips."""
