"""A web server whose page asks a database, over one connection that it keeps.

Reads the login as JSON, prints its port, and serves until its input ends.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg


def serve(connection: psycopg.Connection) -> ThreadingHTTPServer:
    class Page(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            connection.execute("SELECT 1")
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"page")

        def log_message(self, *_words: object) -> None: ...

    return ThreadingHTTPServer(("127.0.0.1", 0), Page)


def main() -> None:
    with psycopg.connect(**json.loads(sys.stdin.readline()), autocommit=True) as connection:
        server = serve(connection)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
