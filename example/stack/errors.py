"""The stack's exception."""


class StackError(Exception):
    """A part did not start, or the stack is already running.

    The message names the part and its log.
    """
