"""nginx before gunicorn: it serves static files, speaks TLS where the step wants it, and passes
requests on.
"""

import os
import shutil
import signal

from example.stack import certificates, web_steps
from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.place import Place
from example.stack.web import home_page_answers

CONFIGURATION = """\
daemon off;
worker_processes {workers};
pid {directory}/pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
    include /etc/nginx/mime.types;
    access_log off;
    server_tokens off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port}{ssl};
        {tls}
        location /static/ {{ alias {static}/; }}
        location / {{
            proxy_pass http://127.0.0.1:{application};
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
        }}
    }}
}}
"""
TLS = """\
ssl_certificate {certificates}/server.crt;
        ssl_certificate_key {certificates}/server.key;
        {sessions}"""
SESSIONS = {
    True: "ssl_session_cache shared:sessions:1m;",
    False: "ssl_session_cache off; ssl_session_tickets off;",
}


def part(place: Place, name: str, port: int, application: int) -> Part:
    """The proxy of a step. `application` is the port of the step's gunicorn."""
    directory, step = place.directory(name), web_steps.STEPS[name]
    tls, authority = "", None
    if step.tls:
        authority = certificates.ensure(place)
        tls = TLS.format(certificates=place.directory("certificates"), sessions=SESSIONS[step.tls_sessions])
    text = CONFIGURATION.format(
        workers=web_steps.servers_cpus(), directory=directory, port=port, ssl=" ssl" if step.tls else "", tls=tls,
        static=place.static(), application=application,
    )  # fmt: skip
    configuration = place.secret_file(directory / "nginx.conf", text)
    return Part(
        name=f"nginx of {name}",
        argv=[program(), "-p", str(directory), "-e", "stderr", "-c", str(configuration)],
        log=place.own / f"{name}.log",
        answers=lambda _: home_page_answers(port, authority),
        death=signal.SIGTERM,
        polite=signal.SIGTERM,
        account=place.account,
        cwd=directory,
        env={"PATH": os.defpath},
        timeout_s=web_steps.TIMEOUT_S,
    )


def program() -> str:
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if not found:
        raise StackError("nginx is missing: apt install nginx")
    return found
