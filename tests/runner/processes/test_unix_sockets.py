"""Connected pairs of Unix sockets."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pgperf.runner.processes import unix_sockets

HOLD = "import sys; print(flush=True); sys.stdin.read()"


def test_both_sockets_of_a_pair_name_their_peer() -> None:
    one, two = socket.socketpair()
    with one, two:
        inodes = tuple(os.fstat(end.fileno()).st_ino for end in (one, two))
        assert {inodes, inodes[::-1]} <= set(unix_sockets.unix_peers())
        assert set(inodes) <= unix_sockets.held(os.getpid())
    assert not {inodes, inodes[::-1]} & set(unix_sockets.unix_peers())


def test_the_process_at_the_far_end_is_found_and_no_other() -> None:
    near, far = socket.socketpair()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[far.fileno()]
    ) as child:
        far.close()
        assert child.stdout
        child.stdout.readline()
        assert unix_sockets.connected(os.getpid(), [child.pid, os.getppid()]) == [child.pid]
        near.close()
        assert unix_sockets.connected(os.getpid(), [child.pid]) == []
        child.communicate()


def test_invisible_sockets_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "1" / "fd").mkdir(parents=True)
    (tmp_path / "1" / "fd" / "3").symlink_to("socket:[17]")
    (tmp_path / "1" / "fd" / "4").symlink_to("/dev/null")
    assert unix_sockets.held(1, str(tmp_path)) == {17}
    assert unix_sockets.held(2, str(tmp_path)) == set()
    assert unix_sockets.connected(2, [1], str(tmp_path)) == []


def test_a_descriptor_that_is_closed_meanwhile_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1" / "fd").mkdir(parents=True)
    (tmp_path / "1" / "fd" / "5").symlink_to("socket:[17]")
    monkeypatch.setattr(os, "listdir", lambda _path: ["4", "5"])
    assert unix_sockets.held(1, str(tmp_path)) == {17}


def test_sockets_of_input_output_and_errors_are_left_out_where_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "1" / "fd").mkdir(parents=True)
    for name in ("0", "1", "2", "3"):
        (tmp_path / "1" / "fd" / name).symlink_to(f"socket:[1{name}]")
    assert unix_sockets.held(1, str(tmp_path)) == {10, 11, 12, 13}
    assert unix_sockets.held(1, str(tmp_path), streams=False) == {13}


@pytest.mark.parametrize("address", ["socket", "\0of no file"], ids=["file", "abstract"])
def test_who_listens_is_known_before_it_accepts_and_after_it_has_closed(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address of a file is as it was bound: another directory may have one of that name."""
    listeners = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        place = address if address == "socket" else f"{address} {name} {os.getpid()}"
        listeners.append(socket.create_server(place, family=socket.AF_UNIX))
    monkeypatch.chdir(tmp_path / "one")
    with listeners[0] as one, listeners[1], socket.socket(socket.AF_UNIX) as client:
        own = os.fstat(client.fileno()).st_ino
        assert unix_sockets.servers_of({own}) == set()
        client.connect(one.getsockname())
        assert unix_sockets.servers_of({own}) == {os.fstat(one.fileno()).st_ino}
        accepted, _ = one.accept()
        assert unix_sockets.servers_of({own}) == {os.fstat(one.fileno()).st_ino}
        accepted.close()
        assert unix_sockets.servers_of({own}) == set()
