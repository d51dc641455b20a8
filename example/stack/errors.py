"""What can go wrong with the stack, said so that a person knows what to do."""


class StackError(Exception):
    """A part did not start, or the stack is already running; the message names the part and its log."""
