"""Puts the documents into a wheel, whose hints name them. Refuses to build a wheel or an sdist without
Chart.js: a site could not have charts then.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VENDOR = Path("pgperf", "static", "pgperf", "vendor")
FILES = ("chart.umd.js", "chart.umd.js.map", "chart.js-LICENSE.md", "kurkle-color-LICENSE.md")


class Assets(BuildHookInterface):
    """An editable install may do without; `make build` fetches them from npm afterwards."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        missing = [name for name in FILES if not Path(self.root, VENDOR, name).is_file()]
        if missing and version != "editable":
            raise RuntimeError(f"{VENDOR} lacks {', '.join(missing)}: run `make wheel`")
        if self.target_name == "wheel" and version != "editable":
            build_data["force_include"]["docs"] = "pgperf/docs"
