"""gunicorn, alone or behind nginx, with a page that takes as long as a test wants."""

import http.client
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from example.stack import nginx
from tests.process_ends import await_ends
from tests.waiting import until

#: Both programs have two processes that serve requests.
SERVING = 2
_DEADLINE_S = 60.0
_SITE = """
import os, socket

def application(environ, start_response):
    if environ["PATH_INFO"] == "/held":
        with socket.create_connection(("127.0.0.1", int(os.environ["HOLDER"]))) as holder:
            holder.recv(1)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return [b"page"]
"""
_PROXY = """
{user}
daemon off;
worker_processes 2;
pid {directory}/pid;
error_log stderr warn;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://{upstream}; }}
    }}
}}
"""


@dataclass(frozen=True)
class Holder:
    """Where held requests wait."""

    listener: socket.socket

    @contextmanager
    def holding(self, port: int, requests: int = SERVING) -> Iterator[None]:
        """So many requests are being served meanwhile, each by a process of its own."""
        statuses: list[int] = []
        clients = [threading.Thread(target=lambda: statuses.append(get(port))) for _ in range(requests)]
        for client in clients:
            client.start()
        held = [self.listener.accept()[0] for _ in clients]
        try:
            yield
        finally:
            for connection in held:
                connection.close()
            for client in clients:
                client.join()
        assert statuses == [200] * requests


def get(port: int, path: str = "/held") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_DEADLINE_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


@contextmanager
def holder() -> Iterator[Holder]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(_DEADLINE_S)
        yield Holder(listener)


@contextmanager
def gunicorn(directory: Path, holder: Holder, listener: socket.socket) -> Iterator[psutil.Process]:
    """With the page, on the given socket, which belongs to it alone from then on."""
    (directory / "held_page.py").write_text(_SITE)
    words = f"--bind=fd://{listener.fileno()} --workers={SERVING} --no-control-socket --log-level=warning"
    command = [str(Path(sys.executable).with_name("gunicorn")), "held_page", *words.split()]
    env = {**os.environ, "HOLDER": str(holder.listener.getsockname()[1]), "GUNICORN_CMD_ARGS": ""}
    with listener:
        server = subprocess.Popen(command, cwd=directory, env=env, pass_fds=[listener.fileno()])
    with _running(server) as process:
        yield process


@contextmanager
def proxy(directory: Path, upstream: str, listener: socket.socket) -> Iterator[psutil.Process]:
    """nginx on the given socket, which it inherits as from an earlier nginx."""
    user = "user root root;" if os.geteuid() == 0 else ""
    port = listener.getsockname()[1]
    configuration = directory / "nginx.conf"
    configuration.write_text(_PROXY.format(user=user, directory=directory, port=port, upstream=upstream))
    command = [nginx.program(), "-p", str(directory), "-e", "stderr", "-c", str(configuration)]
    env = {"PATH": os.defpath, "NGINX": f"{listener.fileno()};"}
    with listener:
        server = subprocess.Popen(command, cwd=directory, env=env, pass_fds=[listener.fileno()])
    with _running(server) as process:
        yield process


@contextmanager
def _running(server: "subprocess.Popen[bytes]") -> Iterator[psutil.Process]:
    process = psutil.Process(server.pid)
    try:
        until(lambda: len(process.children()) == SERVING, _DEADLINE_S, f"{process.name()} serves")
        yield process
    finally:
        workers = [os.pidfd_open(child.pid) for child in process.children()]
        server.terminate()
        server.wait(_DEADLINE_S)
        assert await_ends(workers, _DEADLINE_S) == 0
