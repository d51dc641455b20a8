"""Advice on a server's settings: a pure calculation from memory, CPUs, storage and use.

The rules are those of pgtune, as facts of its behaviour. Standard library only.
"""
