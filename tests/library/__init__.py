"""An app of the tests' site with relations of every kind, and secrets."""
