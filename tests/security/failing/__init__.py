"""An app that makes a run fail with the password in the exception."""
