"""Ledgers are opened: made, brought up to date, or refused in one line that holds no secret."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import make_url, text

from deniable.budget import database, sqlite
from deniable.budget.charging import Asked, Run
from deniable.budget.database import HEAD, VERSION_TABLE
from deniable.budget.ledger import Ledger
from deniable.budget.limits import Budget
from deniable.budget.schema import METADATA
from deniable.errors import LedgerDownError, LedgerError
from ledgers import ONE, draws, execute, pay
from postgres import PASSWORD, Server

SECRET = "hunter2"  # noqa: S105 (no password of anything)


def refusal(place: str | Path) -> LedgerError:
    """What opening says: one line, and nothing with it that would tell a password."""
    with pytest.raises(LedgerError) as caught:
        Ledger(place).close()
    error = caught.value
    assert error.exit_code == 2
    assert "\n" not in str(error)
    everything = "".join(traceback.format_exception(error))
    assert PASSWORD not in everything
    assert SECRET not in everything.replace("/", "")
    return error


def listing(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


def together(count: int, program: str, *arguments: str) -> list[str]:
    """Run a program in some processes at once, and return what each printed."""
    command = [sys.executable, "-c", program, *arguments]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(count)
    ]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0] * count, said
    return said


def test_a_new_ledger_has_exactly_the_tables_that_it_should(ledger: Ledger) -> None:
    def ours(thing: object, name: str | None, kind: str, *rest: object) -> bool:
        return not (kind == "table" and name == VERSION_TABLE)

    with ledger.transaction() as connection:
        settings = {"compare_type": True, "include_object": ours}
        context = MigrationContext.configure(connection, opts=settings)
        assert compare_metadata(context, METADATA) == []
        version = connection.execute(text("SELECT version_num FROM deniable_version"))
        assert version.scalars().all() == [HEAD]


def test_opening_again_changes_nothing(place: str) -> None:
    for _ in range(3):
        with Ledger(place) as ledger:
            pay(ledger, "ann", 1)
            assert draws(ledger) == {"ann": 1}


def test_a_version_of_the_future_is_named(place: str) -> None:
    with Ledger(place) as ledger:
        pay(ledger, "ann", 1)
    execute(place, "UPDATE deniable_version SET version_num = '0099'")
    assert "is a ledger of version 0099, made by a newer deniable" in str(refusal(place))
    execute(place, "UPDATE deniable_version SET version_num = :head", head=HEAD)
    with Ledger(place) as ledger:
        assert draws(ledger) == {"ann": 1}


def test_tables_without_a_version_are_not_taken_over(place: str) -> None:
    execute(place, "CREATE TABLE deniable_charges (id INTEGER)")
    assert "is the database of another program; name a new file" in str(refusal(place))


def test_tables_that_are_gone_are_one_line(ledger: Ledger, place: str) -> None:
    execute(place, "DROP TABLE deniable_charges")
    for use in (lambda: pay(ledger, "ann", 1), ledger.balances, lambda: list(ledger.charges())):
        with pytest.raises(LedgerError, match="its tables are not all there"):
            use()


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_the_database_of_another_program_is_left_as_it_is(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "accounts.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode={journal}")
    connection.execute("CREATE TABLE accounts (name TEXT)")
    connection.commit()
    connection.close()
    before = listing(tmp_path)
    assert "is the database of another program" in str(refusal(path))
    assert listing(tmp_path) == before


def test_another_program_may_live_in_the_same_server_database(server: Server) -> None:
    place = server.make_database()
    execute(place, "CREATE TABLE accounts (name TEXT)")
    with Ledger(place) as ledger:
        assert pay(ledger, "ann", 1)


@pytest.mark.parametrize("content", [b"who,note\nann,hello\n" * 100, b"\0" * 5000, b"SQLite"])
def test_another_file_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "notes.csv").write_bytes(content)
    assert "is not a ledger; name another file" in str(refusal(tmp_path / "notes.csv"))
    assert listing(tmp_path) == {"notes.csv": content}


def test_a_damaged_ledger_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with Ledger(path) as ledger:
        for part in range(50):
            pay(ledger, "ann", 1, part)
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:4096] + b"\x07" * (len(whole) - 4096)):
        path.write_bytes(damaged)
        with pytest.raises(LedgerError) as caught, Ledger(path) as ledger:
            ledger.balances()
        assert "\n" not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place, said in (
        (tmp_path, "is a folder; a ledger is a file"),
        (tmp_path / "none" / "l.db", "its folder does not exist; make it first"),
        (tmp_path / "pipe", "is not a file that can keep anything"),
        ("/dev/null", "is not a file that can keep anything"),
        ("", "a ledger is a file or a database URL; got nothing"),
        ("sqlite://", "a ledger in SQLite is a file; name one"),
        ("sqlite:///:memory:", "a ledger in SQLite is a file; name one"),
        ("sqlite:///file:l?mode=memory&uri=true", "a ledger in SQLite is a file; name one"),
    ):
        assert said in str(refusal(place))
    assert listing(tmp_path) == {}


# As root everything can be read and written, so root becomes nobody here.
AS_A_USER = """
import os, sys
from deniable.budget.ledger import Ledger
from deniable.errors import LedgerError
import deniable.budget.migrate
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for place in sys.argv[1:]:
    try:
        Ledger(place)
    except LedgerError as error:
        print(error.exit_code, error)
"""


@pytest.fixture
def shown_folder() -> Iterator[Path]:
    """A folder that everyone may look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_what_this_user_may_not_write_is_refused(shown_folder: Path) -> None:
    with Ledger(shown_folder / "l.db") as ledger:
        pay(ledger, "ann", 1)
    (shown_folder / "l.db").chmod(0o444)
    shown_folder.chmod(0o555)
    before = listing(shown_folder)
    places = [str(shown_folder / name) for name in ("l.db", "new.db")]
    [said] = together(1, AS_A_USER, *places)
    shown_folder.chmod(0o755)
    assert said.splitlines() == [
        f"2 {places[0]}: can't be read and written by this user; change who may",
        f"2 {places[1]}: can't be opened (Permission denied)",
    ]
    assert listing(shown_folder) == before


def test_a_ledger_is_for_its_owner_alone(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        pay(ledger, "ann", 1)
        for path in tmp_path.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600


WRONG = {
    f"mysql://u:{SECRET}@h/d": "'mysql':// is no ledger's URL",
    f"postgres://u:{SECRET}@h/d": "'postgres':// is no ledger's URL",
    f"postgresql+asyncpg://u:{SECRET}@h/d": "'postgresql+asyncpg':// is no ledger's URL",
    f"sqlite+aiosqlite:///{SECRET}": "'sqlite+aiosqlite':// is no ledger's URL",
    f"postgresql://u:p@h:{SECRET}/d": "a URL of postgresql can't be read",
    f"postgresql://h:1/d?password={SECRET}&connect_timeout=1": "postgresql+psycopg://h:1/d: ",
    f"postgresql://u:{SECRET}@127.0.0.1:1/d": "nothing answers there; start the database",
    f"postgresql://u:{SECRET}@no-host.invalid/d": "there is no such host",
    f"postgresql://u:{SECRET}@127.0.0.1:1/d?nonsense={SECRET}": "postgresql+psycopg://u:***@",
}


@pytest.mark.parametrize("place", WRONG)
def test_a_wrong_url_is_one_line(place: str) -> None:
    assert WRONG[place] in str(refusal(place))


def test_a_wrong_password_user_or_database_is_one_line(server: Server) -> None:
    place = server.make_database()
    url = make_url(place)
    for wrong, said in (
        (url.set(password=SECRET), "the database refuses the user or the password"),
        (url.set(username="nobody"), "the database refuses the user or the password"),
        (url.set(database="none"), "there is no such database or user; make it first"),
        (url.set(port=1), "nothing answers there; start the database"),
    ):
        assert said in str(refusal(wrong.render_as_string(hide_password=False)))
    without = f"postgresql://{url.username}@{url.host}:{url.port}/{url.database}"
    assert "the database asks for a password" in str(refusal(without))


def test_a_user_without_rights_is_told_so(server: Server) -> None:
    place = server.make_database()
    Ledger(place).close()
    url = make_url(place)
    server.execute(f"CREATE ROLE guest_of_{url.database} LOGIN PASSWORD '{SECRET}'")
    guest = url.set(username=f"guest_of_{url.database}", password=SECRET)
    said = str(refusal(guest.render_as_string(hide_password=False)))
    assert "the database refuses this user; grant it the ledger's tables" in said


def test_the_plain_name_of_a_driver_will_do(server: Server) -> None:
    with Ledger(server.make_database().replace("+psycopg", "")) as ledger:
        assert pay(ledger, "ann", 1)
        assert PASSWORD not in repr(ledger) + ledger.name


OPEN = """
import sys, time
from deniable.budget.ledger import *
import deniable.budget.migrate
time.sleep(max(0.0, float(sys.argv[2]) - time.time()))
with Ledger(sys.argv[1]) as ledger:
    print(ledger.charge(Asked(["ann"], [1]), Rate(1.0), Run(str(time.time_ns()), 0)))
"""


def test_many_may_open_a_new_ledger_at_once(place: str) -> None:
    soon = str(time.time() + 1.0)
    assert together(4, OPEN, place, soon) == ["[None]\n"] * 4
    with Ledger(place) as ledger:
        assert draws(ledger) == {"ann": 4}


def test_opening_waits_for_nobody_who_charges(ledger: Ledger, place: str) -> None:
    with ledger.transaction() as connection:
        database.lock_all(connection)
        with Ledger(place) as other:
            assert other.balances() == []


def test_a_ledger_that_is_open_twice_in_a_process_loses_nothing(tmp_path: Path) -> None:
    """Closing any other descriptor of a file takes away the locks that SQLite has on it."""
    place = str(tmp_path / "l.db")
    program = OPEN.replace('"ann"', '"bob"')
    with Ledger(place) as ledger:
        assert pay(ledger, "ann", 1)
        Ledger(place).close()
        assert together(1, program, place, "0") == ["[None]\n"]
        assert pay(ledger, "ann", 2, 1)
        assert together(1, program, place, "0") == ["[None]\n"]
    with Ledger(place) as ledger:
        assert draws(ledger) == {"ann": 3, "bob": 2}


FORK = """
import os, sys
from deniable.budget.ledger import *
ledger = Ledger(sys.argv[1])
for round in range(3):
    child = os.fork()
    for part in range(20):
        who = "child" if child == 0 else "parent"
        run = Run(f"{who} {round}", part)
        assert ledger.charge(Asked([who, "both"], [1, 1]), Rate(1.0), run) == [None, None]
        ledger.balances()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print("well")
"""


def test_a_ledger_goes_on_in_a_forked_process(place: str) -> None:
    assert together(1, FORK, place) == ["well\n"]
    with Ledger(place) as ledger:
        assert draws(ledger) == {"child": 60, "parent": 60, "both": 120}


def test_threads_may_share_a_ledger(ledger: Ledger) -> None:
    ledger.set_budget(Budget(100.0))

    def charge(part: int) -> int:
        return sum(pay(ledger, "ann", 1, part * 10 + i) for i in range(10))

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(charge, range(20))) == 100
    assert draws(ledger) == {"ann": 100}


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (a link may go while it is listed)


def test_nothing_stays_open(place: str, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("hello" * 100)
    execute(str(tmp_path / "other.db"), "CREATE TABLE accounts (name TEXT)")

    def use() -> None:
        with Ledger(place) as ledger:
            pay(ledger, "ann", 1)
            next(ledger.charges())
        for wrong in (tmp_path / "notes", tmp_path / "other.db", "postgresql://127.0.0.1:1/d"):
            refusal(wrong)

    use()
    before = descriptors()
    for _ in range(10):
        use()
    assert descriptors() == before


def test_whoever_waits_too_long_may_try_again(
    ledger: Ledger, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PATIENCE", 0.2)
    monkeypatch.setattr(database, "WRITING", database.WRITING.replace("60s", "200ms"))
    with Ledger(place) as other:
        with ledger.transaction() as connection:
            database.lock_all(connection)
            with pytest.raises(LedgerDownError, match="others have held it for 60 s; try again"):
                pay(other, "ann", 1)
        assert pay(other, "ann", 1)


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_no_setting_of_a_server_makes_a_charge_fail_or_unsafe(
    server: Server, isolation: str
) -> None:
    place = server.make_database()
    name = make_url(place).database
    for setting in (f"default_transaction_isolation = '{isolation}'", "synchronous_commit = off"):
        server.execute(f"ALTER DATABASE {name} SET {setting}")
    with Ledger(place) as ledger:
        with ThreadPoolExecutor(8) as pool:
            paid = pool.map(lambda part: pay(ledger, "ann", 1, part), range(80))
            assert all(paid)
        with ledger.transaction() as connection:
            found = connection.execute(text("SHOW synchronous_commit")).scalar()
        assert found == "local"
        assert draws(ledger) == {"ann": 80}


def test_subjects_of_one_bucket_do_not_meet(ledger: Ledger) -> None:
    names = [f"subject {n}" for n in range(500)]
    counts = [n % 7 for n in range(500)]
    assert ledger.charge(Asked(names, counts), ONE, Run("run", 0)) == [None] * 500
    assert draws(ledger) == dict(zip(names, counts, strict=True))


def test_very_many_subjects_are_charged_at_once(ledger: Ledger) -> None:
    names = [f"subject {n}" for n in range(10_000)]
    ledger.set_budget(Budget(3.0, period=1e6))
    asked = Asked(names, [2] * len(names))
    assert ledger.charge(asked, ONE, Run("run", 0)) == [None] * len(names)
    assert ledger.charge(asked, ONE, Run("run", 0)) == [None] * len(names)
    assert None not in ledger.charge(asked, ONE, Run("run", 1))
    assert set(draws(ledger).values()) == {2}
