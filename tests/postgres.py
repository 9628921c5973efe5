"""A real PostgreSQL on loopback for the tests: one for all of their processes, gone after them.

A keeper, a process of its own, runs the server for as long as the first pytest process holds a lock
on a file. A lock goes with its process, however that ends, and the server and its files follow.

    python tests/postgres.py FOLDER     # this is the keeper
"""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import IO, Any

import pytest

VARIABLE = "DENIABLE_TEST_POSTGRESQL"
USER, PASSWORD = "keeper", "open sesame:@/?"
PATIENCE = 60.0
ROOM = 2 * 10**9
MISSING = "SKIPPED FOR WANT OF POSTGRESQL: {}; on Debian and Ubuntu: apt-get install postgresql"

_held: list[tuple[Path, IO[str]]] = []


def programs() -> Path | None:
    """The folder of the newest server that is installed."""
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    found = sorted(versions, key=lambda path: [int(n) for n in re.findall(r"\d+", str(path))])
    named = shutil.which("initdb")
    newest = found[-1] if found else named and Path(named).resolve()
    return newest.parent if newest else None


class Server:
    """A server that a keeper runs in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready, self._down = folder / "ready", folder / "down"

    def start(self) -> None:
        """Start it, if nobody has yet, and wait until it answers."""
        with _locked(self._folder / "starting"):
            self._down.unlink(missing_ok=True)
            if not (self._folder / "keeper").exists():
                (self._folder / "keeper").touch()
                _start_keeper(self._folder)
            self._wait(self._ready.exists)

    def crash(self) -> None:
        """Let it end at once, as if its machine had."""
        self._down.touch()
        self._wait(lambda: not self._ready.exists())

    def _wait(self, done: Any) -> None:
        until = time.monotonic() + PATIENCE
        while not done():
            failed = self._folder / "failed"
            if failed.exists() or time.monotonic() > until:
                said = failed.read_text() if failed.exists() else "it takes too long"
                raise RuntimeError(f"PostgreSQL: {said}")
            time.sleep(0.02)

    def url(self, database: str, password: str = PASSWORD, user: str = USER) -> str:
        """What a user names a ledger by."""
        from sqlalchemy import URL  # noqa: PLC0415 (the keeper does without)

        port = int(self._ready.read_text())
        made = URL.create("postgresql+psycopg", user, password, "127.0.0.1", port, database)
        return made.render_as_string(hide_password=False)

    def make_database(self, settings: str = "") -> str:
        """Make an empty database, and return its URL."""
        name = f"t{token_hex(8)}"
        self.execute(f"CREATE DATABASE {name} {settings}")
        return self.url(name)

    def execute(self, statement: str) -> None:
        """Run a statement as the server's administrator."""
        import psycopg  # noqa: PLC0415 (as above)

        port = int(self._ready.read_text())
        with psycopg.connect(
            host="127.0.0.1", port=port, user=USER, password=PASSWORD, dbname="postgres",
            autocommit=True,
        ) as connection:  # fmt: skip
            connection.execute(statement.encode())


@contextmanager
def private_server(parent: str | None = None) -> Iterator[Server]:
    """A server of one's own, which may be made to crash; in a folder, or where it is fast."""
    folder, lock = _hold(parent or _roomy())
    try:
        server = Server(folder)
        server.start()
        yield server
    finally:
        _release(folder, lock)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server | None]:
    """The server that all tests share; none where none is installed."""
    if programs() is None:
        yield None
        return
    server = Server(Path(os.environ[VARIABLE]))
    server.start()
    yield server


@pytest.fixture
def server(postgresql: Server | None, request: pytest.FixtureRequest) -> Server:
    """The server, for a test that can't do without."""
    if postgresql is None:
        pytest.skip(MISSING.format(request.node.nodeid))
    return postgresql


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new ledger's name, in each of the databases."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    server: Server = request.getfixturevalue("server")
    return server.make_database()


def pytest_configure(config: pytest.Config) -> None:
    """Name a folder for the server; the first process holds it for all."""
    if not hasattr(config, "workerinput"):
        _held.append(_hold(_roomy()))
        os.environ[VARIABLE] = str(_held[-1][0])


def pytest_unconfigure() -> None:
    """Wait until the server is gone."""
    while _held:
        _release(*_held.pop())


def _hold(parent: str | None) -> tuple[Path, IO[str]]:
    folder = Path(tempfile.mkdtemp(prefix="deniable-pg-", dir=parent))
    folder.chmod(0o755)
    lock = (folder / "used").open("w")
    fcntl.flock(lock, fcntl.LOCK_SH)
    return folder, lock


def _roomy() -> str | None:
    """Memory, where there is room: some disks take seconds to sync or erase a thousand files."""
    memory = Path("/dev/shm")  # noqa: S108 (a folder of our own is made in it)
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < ROOM:
        return None
    return str(memory)


def _release(folder: Path, lock: IO[str]) -> None:
    lock.close()
    if not (folder / "keeper").exists():
        shutil.rmtree(folder, ignore_errors=True)
    until = time.monotonic() + PATIENCE
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.02)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _start_keeper(folder: Path) -> None:
    # In a session of its own, so that Ctrl-C is for the tests alone; it leaves a child behind.
    subprocess.run(
        [sys.executable, __file__, str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=True,
    )


class Keeper:
    """Runs a server in a folder until nobody uses it any more."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._data = folder, folder / "data"
        self._ready, self._down = folder / "ready", folder / "down"
        self._programs = programs() or Path()
        self._port = 0
        self._server: subprocess.Popen[bytes] | None = None

    def keep(self) -> None:
        """Hold it up, or down, until the lock is free."""
        try:
            self._make()
            with (self._folder / "used").open() as used:
                while not _free(used):
                    self._as_wished()
                    time.sleep(0.02)
        except Exception as error:
            (self._folder / "failed").write_text(f"{error} {self._said()}")
            raise
        finally:
            self._stop(signal.SIGQUIT)
            shutil.rmtree(self._folder)

    def _make(self) -> None:
        user = self._user()
        self._data.mkdir(mode=0o700)
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        if user:
            shutil.chown(self._data, user["user"], user["group"])
        access = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={secret}"]
        kind = ["--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        self._run("initdb", f"--pgdata={self._data}", *access, *kind)

    @staticmethod
    def _user() -> dict[str, Any]:
        """As whom the server runs: it refuses to be root."""
        if os.geteuid() != 0:
            return {}
        names = {one.pw_name for one in pwd.getpwall()}
        found = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(
            command, capture_output=True, check=False, cwd=self._data, **self._user()
        )
        if done.returncode:
            raise RuntimeError(done.stderr.decode())

    def _as_wished(self) -> None:
        running = self._server is not None and self._server.poll() is None
        if self._down.exists():
            self._stop(signal.SIGQUIT)
            self._ready.unlink(missing_ok=True)
        elif not running:
            self._start()

    def _start(self) -> None:
        for _ in range(5):
            self._port = self._port or _free_port()
            self._server = self._postgres()
            if self._answers():
                (self._folder / "port").write_text(str(self._port))
                (self._folder / "port").rename(self._ready)
                return
            self._stop(signal.SIGQUIT)
            # Somebody else was given the port, unless it is known from before.
            self._port = 0
        raise RuntimeError("the server doesn't start")

    def _postgres(self) -> subprocess.Popen[bytes]:
        where = ["-D", self._data, "-h", "127.0.0.1", "-p", str(self._port), "-k", self._data]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self._programs / "postgres", *where],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._data,
                **self._user(),
            )

    def _answers(self) -> bool:
        ask = [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self._port)]
        until = time.monotonic() + PATIENCE
        while self._server and self._server.poll() is None and time.monotonic() < until:
            if subprocess.run(ask, check=False).returncode == 0:
                return True
            time.sleep(0.02)
        return False

    def _stop(self, how: signal.Signals) -> None:
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(how)
            self._server.wait()

    def _said(self) -> str:
        log = self._folder / "log"
        return log.read_text("utf-8", "replace")[-2000:] if log.exists() else ""


def _free(used: IO[str]) -> bool:
    try:
        fcntl.flock(used, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__" and os.fork() == 0:
    Keeper(Path(sys.argv[1])).keep()
