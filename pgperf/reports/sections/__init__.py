"""The sections of the run page: each module's function `part` makes the data that its template
shows.
"""

from typing import Any

#: What a template gets; empty if the run has nothing for the section. A `title` replaces the usual
#: one of the section.
Part = dict[str, Any]
