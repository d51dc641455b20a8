"""A client's process as its runner sees it: it has the nursery run the client with its own pipes, and
ends as the client ends.
"""

import json
import os
import signal
import socket
import sys

if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as nursery:
        nursery.connect(sys.argv[1])
        asked = {
            "argv": sys.argv[2:],
            "environment": dict(os.environ),
            "directory": os.getcwd(),
            "group": os.getpgid(0),
            "parent": os.getppid(),
        }
        socket.send_fds(nursery, [json.dumps(asked).encode()], [0, 1, 2])
        os.closerange(0, 2)  # the runner learns from them when the client has ended
        code = int(nursery.recv(20) or -signal.SIGKILL)
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)
