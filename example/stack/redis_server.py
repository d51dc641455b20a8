"""Redis, Celery's broker. It keeps messages over a restart and never evicts them."""

import os
import shutil

from redis import Redis
from redis.exceptions import RedisError

from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.place import Place
from example.stack.state import State

CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir {directory}
appendonly yes
save ""
maxmemory-policy noeviction
"""


def part(place: Place, state: State) -> Part:
    directory = place.directory("redis")
    port = state.ports["redis"]
    text = CONFIGURATION.format(port=port, password=state.redis_password, directory=directory)
    configuration = place.secret_file(directory / "redis.conf", text)
    return Part(
        name="Redis",
        argv=[_program(), str(configuration)],
        log=place.own / "redis.log",
        answers=lambda _: _answers(port, state.redis_password),
        account=place.account,
        cwd=directory,
        env={"PATH": os.defpath},
    )


def url(state: State) -> str:
    return f"redis://:{state.redis_password}@127.0.0.1:{state.ports['redis']}/0"


def _answers(port: int, password: str) -> bool:
    try:
        with Redis(host="127.0.0.1", port=port, password=password, socket_timeout=2) as connection:
            return bool(connection.ping())
    except RedisError:
        return False


def _program() -> str:
    found = shutil.which("redis-server")
    if not found:
        raise StackError("Redis is missing: apt install redis-server")
    return found
