"""Connected pairs of Unix sockets."""

import os
import socket
import subprocess
import sys
from pathlib import Path

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
