"""Texts for people that are defined where Django is not imported."""


def gettext_noop(text: str) -> str:
    """Mark a text for translation, as Django's function of this name; pages translate it when they
    show it.
    """
    return text
