"""The words that make a process end with its parent, for each setpriv that a system may have."""

from pathlib import Path

import pytest

from pgperf.core.parent_death import die_with_parent

#: BusyBox refuses the option with its usage.
BUSYBOX = "#!/bin/sh\necho 'setpriv: unrecognized option: pdeathsig' >&2\nexit 1\n"
UTIL_LINUX = '#!/bin/sh\nshift 3\nexec "$@"\n'


@pytest.mark.parametrize(("program", "found"), [(UTIL_LINUX, True), (BUSYBOX, False), ("", False)])
def test_they_are_there_only_where_setpriv_takes_them(
    program: str, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "setpriv"
    if program:
        place.write_text(program)
        place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin" if program else str(tmp_path))
    assert die_with_parent() == ([str(place), "--pdeathsig", "KILL", "--"] if found else [])
