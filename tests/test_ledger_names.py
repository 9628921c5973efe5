"""Whoever a subject is, their name is kept as it is, and their charges are nobody else's."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deniable.budget.charging import Asked, Run
from deniable.budget.ledger import LONGEST_NAME, Ledger
from deniable.budget.limits import Budget
from deniable.errors import LedgerError
from ledgers import ONE, clear, draws, pay
from postgres import Server

calm = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# Any text without surrogates and NUL that is not all spaces.
names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60
).filter(str.strip)

# Names that are easily taken for each other, or for something else than a name.
ALIKE = [
    "ss", "ß", "İ", "i̇", "ann", "Ann", "ANN", "ann ", " ann", "ann\n", "a\u0301nn",
    "\u00e1nn", "\u0430nn", "ann\u200b", ":subject", "?",
    "1", "01", "1.0", "1e0", "null", "NULL", "None", "true", "0x41", "%", "_", "a%", "\\", "\\x00",
    "'", "''", '"', "';", "'; DROP TABLE deniable_charges; --", "' OR '1'='1", "$1",
    "%(subject)s", "{}", "{ann}", '["ann"]', '{"ann":1}', "ann,bob", "\ufeffann",
    "\U0001f469\u200d", "\U0001f469", "\U0010ffff", "\ufffd", "\uffff", "\x7f", "\x01",
    "\t.", "\r\n.",
]  # fmt: skip
LONG = ["a" * LONGEST_NAME, "b" * LONGEST_NAME, "é" * LONGEST_NAME, "\u4e2d" * 833]
REFUSED = [
    "", " ", "\n\t ", "\u3000", "a\0b", "\0", "\ud800", "a\udfffb", "a" * (LONGEST_NAME + 1),
    "\U0001f469" * 626, "\u4e2d" * 834,
]  # fmt: skip


def test_names_that_look_alike_are_different_people(ledger: Ledger) -> None:
    everyone = [*ALIKE, *LONG]
    assert len(set(everyone)) == len(everyone)
    counts = list(range(1, len(everyone) + 1))
    assert ledger.charge(Asked(everyone, counts), ONE, Run("run", 0)) == [None] * len(everyone)
    expected = dict(zip(everyone, counts, strict=True))
    assert draws(ledger) == expected
    for name, count in expected.items():
        [balance] = ledger.balances(name)
        assert (balance.subject, balance.cost.count) == (name, count)
        assert not ledger.balances(name + "?")


@calm
@given(everyone=st.lists(names, unique=True, min_size=1, max_size=6), data=st.data())
def test_any_text_is_a_name(ledger: Ledger, everyone: list[str], data: st.DataObject) -> None:
    clear(ledger)
    counts = [data.draw(st.integers(1, 5)) for _ in everyone]
    for name, count in zip(everyone, counts, strict=True):
        ledger.set_budget(Budget(float(count)), name)
    for part in range(2):
        asked = Asked(everyone, counts)
        refused = ledger.charge(asked, ONE, Run("run", part))
        assert [no is None for no in refused] == [part == 0] * len(everyone)
    assert draws(ledger) == dict(zip(everyone, counts, strict=True))
    assert {row.subject: row.budget.epsilon for row in ledger.budgets()} == draws(ledger)


@calm
@given(text=st.text(st.characters(), max_size=4), long=st.integers(620, 1001))
def test_names_as_long_as_allowed_are_kept_whatever_they_are_made_of(
    ledger: Ledger, text: str, long: int
) -> None:
    """What can't be kept is refused, in the same way by every database."""
    clear(ledger)
    # Letters that nothing can make shorter.
    name = text + "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(long))
    kept = len(name) <= LONGEST_NAME and storable(name)
    try:
        assert pay(ledger, name, 1)
    except LedgerError:
        assert not kept
    else:
        assert kept
        assert draws(ledger) == {name: 1}


def storable(name: str) -> bool:
    return len(name.encode("utf-8", "surrogatepass")) <= 2500 and not any(
        one == "\0" or "\ud800" <= one <= "\udfff" for one in name
    )


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_name_is_refused_and_not_repeated(ledger: Ledger, name: str) -> None:
    for use in (
        lambda: ledger.charge(Asked(["ann", name], [1, 1]), ONE, Run("run", 0)),
        lambda: ledger.set_budget(Budget(1.0), name),
    ):
        with pytest.raises(LedgerError) as caught:
            use()
        assert "\n" not in str(caught.value)
        assert name not in str(caught.value) or not name.strip()
    assert draws(ledger) == {}
    assert ledger.budgets() == []


@pytest.mark.parametrize("name", [None, 1, 1.5, b"ann", ["ann"]])
def test_a_name_is_a_string(ledger: Ledger, name: object) -> None:
    with pytest.raises((LedgerError, TypeError)):
        ledger.charge(Asked([name], [1]), ONE, Run("run", 0))  # type: ignore[list-item]
    assert draws(ledger) == {}


@pytest.mark.parametrize("run", ["a\0b", "\ud800", "x" * 1001])
def test_a_run_has_a_name_that_can_be_kept(ledger: Ledger, run: str) -> None:
    with pytest.raises(LedgerError, match="a run's name has at most 1,000 characters"):
        pay(ledger, "ann", 1, run=run)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_another_encoding_keeps_a_name_or_refuses_it(
    server: Server, encoding: str
) -> None:
    place = server.make_database(f"ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    with Ledger(place) as ledger:
        for part, name in enumerate(("ann", "ánn", "\u4e2d", "\U0001f469")):
            try:
                assert pay(ledger, name, 1, part)
            except LedgerError as error:
                assert (encoding, part >= 2) == ("LATIN1", True)
                assert "\n" not in str(error)
            else:
                assert draws(ledger)[name] == 1
