"""Words that are remembered: one draw for a word of a subject, for ever, and readable by no one."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import Sanitizer, Space
from deniable.budget.key import new_key, read_key, write_key
from deniable.budget.ledger import Ledger
from deniable.budget.memory import Memory, forget
from deniable.budget.purse import Purse, Receipt
from deniable.errors import BudgetError, ForgottenError, LedgerError, ParameterError
from deniable.testing import seeded

WORDS = ("red", "blue", "the", *(f"w{i}" for i in range(42)))
POINTS = np.random.default_rng(5).normal(size=(len(WORDS), 6))
SPACE = Space.from_arrays(WORDS, POINTS, name="memory")
KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
TEXT = "red blue the w1 w2 w3 w4 w5 w6 w7 unheardof"
# Red, blue, the and so on, but not the word that the toy space doesn't have.
KNOWN = len(TEXT.split()) - 1
LONG = " ".join(f"w{i}" for i in range(35))


def sanitizer(place: Path, subject: str = "ann", epsilon: float = 0.5, **more: object) -> Sanitizer:
    made: dict[str, object] = {"space": SPACE, "ledger": place, "subject": subject}
    made |= {"remember": True, "key": KEY, **more}
    return Sanitizer("santext", epsilon, **made)  # type: ignore[arg-type]


def spent(place: Path, subject: str = "ann") -> int:
    with Ledger(place) as ledger:
        return sum(one.cost.count for one in ledger.balances(subject))


def test_the_same_word_has_the_same_answer_ever_after(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    first = sanitizer(place).sanitize(TEXT)
    assert spent(place) == KNOWN
    assert first.certificate.document["tokens_charged"] == KNOWN
    for again in (TEXT, TEXT.upper(), TEXT.title()):
        out = sanitizer(place).sanitize(again)
        assert out.text.lower() == first.text.lower()
        # What the text shows is still promised for; only the subject pays nothing more.
        assert out.certificate.document["tokens_charged"] == KNOWN
        assert out.certificate.subject["largest"]["draws"] == KNOWN
    backwards = sanitizer(place).sanitize(" ".join(reversed(TEXT.split()))).text
    assert backwards.split() == list(reversed(first.text.split()))
    assert spent(place) == KNOWN


def test_only_new_words_are_paid_for(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    one = sanitizer(place, budget=KNOWN * 0.5 * 3.3)
    one.sanitize("red red blue")
    assert spent(place) == 2
    texts = [out.text for out in one.sanitize_many(["red blue", "red w1", "w1 w2 w1"])]
    assert texts[1].split()[1] == texts[2].split()[0]
    assert spent(place) == 4


def test_subjects_and_settings_have_their_own_draws(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    outs = {
        sanitizer(place, "ann").sanitize(LONG).text,
        sanitizer(place, "bob").sanitize(LONG).text,
        sanitizer(place, "ann", 0.25).sanitize(LONG).text,
        sanitizer(place, "ann", space=Space.from_arrays(WORDS, POINTS[::-1])).sanitize(LONG).text,
    }
    assert len(outs) == 4
    with Ledger(place) as ledger:
        assert {one.subject for one in ledger.balances()} == {"ann", "bob"}


def test_a_refused_record_is_neither_drawn_nor_remembered(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    one = sanitizer(place)
    two = one.kernel.guarantee.worst_epsilon * 2.5
    tight = sanitizer(place, budget=two)
    # The first two words fit, the third text's do not; those that were had before stay free.
    texts = ["red blue", "w1 w2", "blue red", "w1"]
    done = tight.sanitize_records(texts, None, ["ann"] * 4, 77, stop=False)
    assert sorted(done.refused) == [1, 3]
    assert len(done.texts) == 2
    assert done.texts[0].split() == list(reversed(done.texts[1].split()))
    assert spent(place) == 2
    with pytest.raises(BudgetError):
        tight.sanitize("w1")
    with sqlite3.connect(place) as raw:
        assert raw.execute("select count(*) from deniable_words").fetchone() == (2,)


def test_nothing_of_a_word_is_on_the_disk(tmp_path: Path) -> None:
    # Words so long that no random byte spells one.
    words = ["".join(chr(97 + (i * 7 + k * k) % 26) for k in range(12)) for i in range(26)]
    space = Space.from_arrays(words, POINTS[:26])
    place = tmp_path / "l.db"
    out = sanitizer(place, space=space).sanitize(" ".join([*words[:9], "unheardofhere"]))
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for word in {*words, *out.text.split(), "unheardofhere"}:
        assert word.encode() not in stored
    with sqlite3.connect(place) as raw:
        rows = raw.execute("select word, replacement from deniable_words").fetchall()
    assert len(rows) == 10
    # One length for all, and no two alike: not even that two words had one answer shows.
    assert {(len(word), len(replacement)) for word, replacement in rows} == {(16, 12 + 8 + 16)}
    assert len({replacement for _, replacement in rows}) == len(rows)


def test_a_wrong_key_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    sanitizer(place).sanitize(TEXT)
    with pytest.raises(LedgerError, match="remembered under another key") as caught:
        sanitizer(place, key=OTHER)
    assert caught.value.exit_code == 2
    assert spent(place) == KNOWN
    assert sanitizer(place).sanitize(TEXT).certificate.subject["largest"]["draws"] == KNOWN


def test_a_changed_or_moved_answer_is_seen(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    sanitizer(place).sanitize("red blue")
    with sqlite3.connect(place) as raw:
        (a, x), (b, y) = raw.execute("select word, replacement from deniable_words").fetchall()
        raw.execute("update deniable_words set replacement = ? where word = ?", (y, a))
        raw.execute("update deniable_words set replacement = ? where word = ?", (x, b))
    with pytest.raises(LedgerError, match="a remembered word was changed"):
        sanitizer(place).sanitize("red")


def test_forgetting_erases_and_the_next_draws_are_paid_for(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    sanitizer(place, "ann").sanitize(TEXT)
    kept = sanitizer(place, "bob").sanitize(TEXT).text
    with Ledger(place) as ledger:
        assert forget(ledger, "ann") == KNOWN + 1
        assert forget(ledger, "ann") == 0
    with sqlite3.connect(place) as raw:
        subjects = raw.execute("select distinct subject from deniable_words").fetchall()
    assert subjects == [("bob",)]
    assert spent(place, "ann") == KNOWN
    sanitizer(place, "ann").sanitize(TEXT)
    assert spent(place, "ann") == 2 * KNOWN
    assert sanitizer(place, "bob").sanitize(TEXT).text == kept


def test_words_that_are_forgotten_while_they_are_used_are_not_drawn_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "l.db"
    one = sanitizer(place)
    one.sanitize(TEXT)
    pay = Purse.pay

    def forgotten_then(purse: Purse, *given: Any, **named: Any) -> Receipt:
        receipt = pay(purse, *given, **named)
        forget(purse.ledger, "ann")
        return receipt

    with monkeypatch.context() as patch:
        patch.setattr(Purse, "pay", forgotten_then)
        with pytest.raises(ForgottenError) as caught:
            one.sanitize(TEXT)
    assert caught.value.resumable
    assert spent(place) == KNOWN
    one.sanitize(TEXT)
    assert spent(place) == 2 * KNOWN


def test_what_a_seed_drew_is_never_given_out_as_drawn_at_random(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    with seeded(1):
        first = sanitizer(place).sanitize(LONG)
    assert first.certificate.randomness == "seeded: not private"
    second = sanitizer(place).sanitize(LONG)
    assert second.certificate.randomness == "os-entropy"
    assert second.text != first.text
    assert spent(place) == 2 * 35


CROWD = """
import sys
sys.path.insert(0, {tests!r})
import test_memory
out = test_memory.sanitizer({place!r}).sanitize(test_memory.LONG).text
print(out)
"""


def test_processes_at_once_give_one_answer(tmp_path: Path) -> None:
    program = CROWD.format(tests=str(Path(__file__).parent), place=str(tmp_path / "l.db"))
    command = [sys.executable, "-c", program]
    crowd = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = {process.communicate(timeout=120)[0] for process in crowd}
    assert [process.returncode for process in crowd] == [0] * 4
    assert len(answers) == 1
    # Who came at the same time may each have paid; nobody got what was not paid for.
    assert 35 <= spent(tmp_path / "l.db") <= 4 * 35


def test_a_kill_between_charge_and_memory_loses_no_answer(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    one = sanitizer(place)
    assert one.purse is not None
    child = os.fork()
    if child == 0:
        Memory.remember = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        sanitizer(place).sanitize(TEXT)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert spent(place) == KNOWN
    first = sanitizer(place).sanitize(TEXT).text
    assert sanitizer(place).sanitize(TEXT).text == first
    assert spent(place) == 2 * KNOWN


def success(answers: list[str], word: str) -> bool:
    """The query attack of Chen et al. (2023): the most frequent answer is taken for the word."""
    return Counter(answers).most_common(1)[0][0] == word


def test_the_query_attack_gets_nowhere(tmp_path: Path) -> None:
    """Without memory N answers give the word away, whatever epsilon is; with it they never do."""
    words = WORDS[:24]
    fresh = Sanitizer("santext", 4.0, space=SPACE)
    chances = np.exp(fresh.kernel.log_probs(np.arange(24)))
    best_two = np.sort(chances, axis=1)[:, -2:]
    # N of the paper for 95 %, from the two most likely answers; four times that to be sure.
    low, high = best_two[:, 0], best_two[:, 1]
    needed = int(
        np.ceil(4 * 1.96**2 * ((low + high - (high - low) ** 2) / (high - low) ** 2).max())
    )
    assert needed < 20_000

    def attacked(one: Sanitizer, count: int) -> float:
        hits = 0
        for word in words:
            hits += success(one.sanitize_texts([word] * count)[0], word)
        return hits / len(words)

    # By chance one answer is right for some; many answers are right for all, but not if remembered.
    assert attacked(fresh, min(needed, 3000)) == 1.0
    remembered = sanitizer(tmp_path / "l.db", epsilon=4.0)
    once = attacked(remembered, 1)
    assert once < 1.0
    assert attacked(remembered, 50) == once
    assert attacked(remembered, 500) == once
    assert spent(tmp_path / "l.db") == len(words)


def test_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    write_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(read_key(path)) == 32
    with pytest.raises(LedgerError, match="is there already"):
        write_key(path)
    monkeypatch.setenv("DENIABLE_KEY", new_key())
    assert len(read_key()) == 32
    monkeypatch.setenv("DENIABLE_KEY", "c2hvcnQ=")
    with pytest.raises(LedgerError, match="not a key of 32 bytes") as caught:
        read_key()
    assert "c2hvcnQ" not in str(caught.value)
    monkeypatch.delenv("DENIABLE_KEY")
    with pytest.raises(LedgerError, match="needs a key"):
        read_key()
    with pytest.raises(LedgerError, match="can't be read"):
        read_key(tmp_path / "none")


@given(st.binary(max_size=100))
def test_any_file_is_a_key_or_one_line(content: bytes) -> None:
    import tempfile  # noqa: PLC0415

    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        try:
            assert len(read_key(file.name)) == 32
        except LedgerError as error:
            assert "\n" not in str(error)


def test_remembering_needs_a_ledger_and_no_other_strategy(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="need a ledger"):
        Sanitizer("santext", 1.0, space=SPACE, remember=True, key=KEY)
    with pytest.raises(ParameterError, match="leave strategy record out"):
        sanitizer(tmp_path / "l.db", strategy="record")
    with pytest.raises(ParameterError, match="a ledger charges a subject"):
        sanitizer(tmp_path / "l.db", subject=None).sanitize("red")  # type: ignore[arg-type]
