"""Where the documents are that belong to this version: in the installed package, or in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def document(name: str) -> str:
    """The path of docs/NAME on this machine; "docs/NAME" where there is none."""
    found = (place / "docs" / name for place in (_PACKAGE, _PACKAGE.parent))
    return next((str(path) for path in found if path.is_file()), f"docs/{name}")
