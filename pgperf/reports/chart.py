"""A chart as data: what a page draws is JSON-able and holds no HTML.

It has `kind` (how static/pgperf/ draws it), `label` (what a screen reader says), `axis`, and what
its kind needs: kinds of rows (`stack`, `ladder`, `bars`, `dots`, `forest`) have `rows`, one list of
text lines per bar; kinds of curves (`lines`, `area`) have `x`. A colour is {"light": "#rrggbb",
"dark": "#rrggbb"}, or the name of a CSS variable of static/pgperf/pgperf.css.
"""

from typing import Any

Chart = dict[str, Any]
