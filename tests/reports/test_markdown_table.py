"""Text in Markdown tables stays the text that it is."""

import pytest

from pgperf.reports.markdown_table import escaped


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("django_orm · tcp", "django_orm · tcp"),
        ("_tcp_", r"\_tcp\_"),
        ("__draft__", r"\_\_draft\_\_"),
        ("a__init__.py", r"a\_\_init\_\_.py"),
        ("_", r"\_"),
        ("a|b <i> *c* `d` [x](y)", r"a\|b \<i\> \*c\* \`d\` [x]\(y)"),
    ],
)
def test_no_name_is_markup(text: str, written: str) -> None:
    assert escaped(text) == written
