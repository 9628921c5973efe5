"""Strategies: what is drawn once stays the same, is charged once, and is said to be seen."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import toys
from commands import run
from deniable import Certificate, Policy, Sanitizer, Space, mechanism, mechanisms
from deniable.audit import audit
from deniable.errors import ParameterError
from deniable.kernels import noisy
from deniable.strategy import STRATEGIES, Codebook, EachRecord
from deniable.testing import seeded
from test_randomness import in_forks

NEVER = 1e-9
RECORDS = ["the w5 the W5, The w9 w5's", "w5 w9 w9 zzz", "zzz the zzz w5 Yyy", ""]


def sanitizer(name: str, strategy: str, **more: Any) -> Sanitizer:
    given = next(toys.settings_of(name, mechanisms()[name]))
    return Sanitizer(name, 1.0, space=toys.space_for(name), strategy=strategy, **{**given, **more})


def draws(s: Sanitizer, times: int = 1) -> list[dict[str, list[str]]]:
    """For each record: what each of its words became, in lower case and without a clitic."""
    found = []
    for record, out in zip(RECORDS * times, s.sanitize_many(RECORDS * times), strict=True):
        became: dict[str, list[str]] = defaultdict(list)
        for token in out.tokens:
            # A clitic is left away; the words of the toy space have none.
            before = record[token.start : token.end].lower().partition("'")[0]
            became[before].append(token.text.lower().partition("'")[0])
        found.append(became)
    return found


@pytest.mark.parametrize("name", mechanisms())
def test_a_word_has_one_replacement_in_a_record(name: str) -> None:
    for became in draws(sanitizer(name, "record"), 5):
        assert all(len(set(words)) == 1 for words in became.values())


@pytest.mark.parametrize("name", mechanisms())
def test_a_word_has_one_replacement_in_a_data_set(name: str) -> None:
    s = sanitizer(name, "dataset")
    for _ in range(2):
        every: dict[str, set[str]] = defaultdict(set)
        for became in draws(s, 5):
            for word, found in became.items():
                every[word] |= set(found)
        assert all(len(words) == 1 for words in every.values())
    assert draws(s) == draws(s)


def test_records_are_drawn_apart_and_tokens_too() -> None:
    seen = {tuple(became["w5"]) for became in draws(sanitizer("random", "record"), 30) if became}
    assert len(seen) > 5
    tokens = [set(became["the"]) for became in draws(sanitizer("random", "token"), 30) if became]
    assert max(map(len, tokens)) > 1


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("many", [False, True])
def test_every_strategy_draws_from_the_mechanism(strategy: str, many: bool) -> None:
    """The replacement of a word follows the same distribution, whichever way texts go in."""
    words, counts = np.arange(16), np.zeros(16)
    for seed in range(150):
        with seeded(seed):
            s = sanitizer("custext", strategy, K=16)
            texts = ["w5 w9 w5", "w9 w5"]
            outs = [o.text for o in s.sanitize_many(texts)] if many else s.sanitize_texts(texts)[0]
        counts[s.space.index[outs[1].split()[1]]] += 1
    expected = np.exp(s.kernel.log_probs([s.space.index["w5"]])[0]) * 150
    assert stats.chisquare(counts[words], expected).pvalue > NEVER


@pytest.mark.parametrize(
    ("strategy", "charged", "largest"), [("token", 12, 7), ("record", 7, 3), ("dataset", 3, 3)]
)
def test_different_words_are_charged_once(strategy: str, charged: int, largest: int) -> None:
    """'the', 'w5' and 'w9' are words of the space; 'zzz' and 'yyy' are not."""
    s = sanitizer("santext", strategy)
    tally = s.sanitize_texts(RECORDS)[1]
    joined = s.sanitize_texts([*RECORDS, "no\nline of its own"])[1]
    assert (tally.charged, tally.largest) == (charged, largest)
    assert joined.largest == largest
    document = s.certificate(tally).document
    each = s.kernel.guarantee.worst_epsilon
    assert document["epsilon"] == pytest.approx(charged * each)
    assert document["largest_record"]["epsilon"] == pytest.approx(largest * each)


def test_tallies_of_a_data_set_add_up_to_its_different_words() -> None:
    s = sanitizer("santext", "dataset")
    whole = s.sanitize_texts(RECORDS[:1])[1]
    for record in RECORDS[1:]:
        whole.add(s.sanitize_texts([record])[1])
    assert whole.charged == 3
    assert whole.to_dict()["different"] is None  # which words there were is never written


@pytest.fixture
def quick_audits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy, "audit", partial(audit, draws=200))


@pytest.mark.usefixtures("quick_audits")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", mechanisms())
def test_the_certificate_restates_the_promise_and_verifies(name: str, strategy: str) -> None:
    s = sanitizer(name, strategy)
    certificate = s.certificate(s.sanitize_texts(RECORDS)[1])
    assert certificate.strategy == strategy
    assert Certificate.from_json(certificate.to_json()).verify(s.space).holds
    assert certificate.guarantee["unit"] == s.guarantee.unit
    if strategy == "token":
        assert "repetition" not in certificate.in_clear
        return
    assert "different word" in certificate.guarantee["unit"]
    assert "same pattern" in " ".join(certificate.guarantee["assumptions"])
    assert "same word" in certificate.guarantee["reveals"][-1]
    assert certificate.in_clear["repetition"]["count"] >= certificate.document["tokens_charged"]
    assert forged_problems(certificate, s.space, "token") > 0
    assert forged_problems(certificate, s.space, "none") > 0


def forged_problems(certificate: Certificate, space: Space, strategy: str) -> int:
    forged = json.loads(certificate.to_json()) | {"strategy": strategy, "digest": "x"}
    problems = Certificate.from_json(json.dumps(forged)).verify(space).problems
    return sum("guarantee" in one or "strategy is none" in one for one in problems)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ParameterError, match="strategy must be one of token, record, dataset"):
        sanitizer("random", "sentence")


def test_unknown_tokens_of_a_data_set_are_uniform_and_independent() -> None:
    source, nowhere = (
        mechanism("random", epsilon=1.0).bind(toys.space("random")),
        np.zeros(2, dtype=np.int64),
    )  # never asked
    with seeded(3):
        books = [Codebook(source, 16) for _ in range(4000)]
        found = np.array([book.uniform(["zzz", "yyy"], nowhere) for book in books])
    assert stats.chisquare(np.bincount(found[:, 0], minlength=16)).pvalue > NEVER
    table = np.histogram2d(*found.T, bins=[np.arange(17) - 0.5] * 2)[0]
    assert stats.chi2_contingency(table).pvalue > NEVER


def test_a_codebook_is_begun_anew_under_another_source() -> None:
    s = sanitizer("random", "dataset")
    with seeded(1):
        first = s.sanitize(" ".join(RECORDS)).text
    outside = s.sanitize(" ".join(RECORDS))
    assert outside.certificate.randomness == "os-entropy"
    with seeded(1):
        again = s.sanitize(" ".join(RECORDS)).text
    assert first == again != outside.text


def test_places_of_one_record_are_never_those_of_another() -> None:
    class Counting:
        def sample(self, ids: Any) -> Any:
            self.asked = ids
            return np.arange(len(ids))

    source = Counting()
    drawn = EachRecord(source, 10).draw(np.array([3, 3, 3, 4]), np.array([0, 0, 1, 1]))
    assert source.asked.tolist() == [3, 3, 4]
    assert drawn.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_share_one_codebook(tmp_path: Path, workers: int) -> None:
    space = Space.from_arrays([f"w{i}" for i in range(40)], np.eye(40))
    space.save(tmp_path / "toy.space")
    lines = 60_000
    (tmp_path / "in.txt").write_text("w3 w7 unheard w3\n" * lines)
    done = run(
        "sanitize", tmp_path / "in.txt", "-o", tmp_path / "out.txt", "--mechanism", "random",
        "--epsilon", 1, "--space", tmp_path / "toy.space", "--strategy", "dataset",
        "--workers", workers, "--certificate", tmp_path / "c.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = (tmp_path / "out.txt").read_text().splitlines()
    assert len(found) == lines
    assert len(set(found)) == 1
    certificate = json.loads((tmp_path / "c.json").read_text())
    assert certificate["document"]["tokens_charged"] == 2
    assert certificate["in_clear"]["repetition"]["count"] == 4 * lines


def test_a_data_sets_run_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("red\n")
    done = run(
        "sanitize", tmp_path / "in.txt", "-o", tmp_path / "out.txt", "--strategy", "dataset",
        "--mechanism", "random", "--epsilon", 1, "--resume",
    )  # fmt: skip
    assert done.returncode == 2
    assert b"--resume can't go on with --strategy dataset" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_policies_work_under_every_strategy() -> None:
    policy = Policy(numbers="words", symbols="draw", unknown="mask")
    for strategy in STRATEGIES:
        s = sanitizer("santext", strategy, policy=policy)
        out = s.sanitize("w5 17 17 unheard w5")
        assert "[UNKNOWN]" in out.text
        same = out.text.split()[1] == out.text.split()[2]
        assert same or strategy == "token"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_record_is_a_row_with_all_its_cells(tmp_path: Path, kind: str, workers: int) -> None:
    """'w3' has one draw in both columns of a row; a row is charged for its different words."""
    space = Space.from_arrays([f"w{i}" for i in range(40)], np.eye(40))
    space.save(tmp_path / "toy.space")
    table = pd.DataFrame({"a": ["w3 w7 w3", "", "w3"] * 40, "b": ["w3 zzz", "w9", "ZZZ w3"] * 40})
    source, target = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    write_table(table, source)
    done = run(
        "sanitize", source, "-o", target, "--mechanism", "random", "--epsilon", 1,
        "--space", tmp_path / "toy.space", "--strategy", "record", "--workers", workers,
        "--column", "a", "--column", "b", "--certificate", tmp_path / "c.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = read_table(target)
    for before, after in zip(table.to_dict("records"), found.to_dict("records"), strict=True):
        old, new = (f"{row['a']} {row['b']}".split() for row in (before, after))
        # The case pattern of an unknown word is kept.
        became = dict(zip(map(str.lower, old), map(str.lower, new), strict=True))
        assert [became[word.lower()] for word in old] == [word.lower() for word in new]
    document = json.loads((tmp_path / "c.json").read_text())["document"]
    assert document["records"] == 120
    assert document["tokens_charged"] == 40 * (2 + 1 + 1)
    assert document["largest_record"]["tokens_charged"] == 2


def write_table(table: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_parquet(path)


def read_table(path: Path) -> pd.DataFrame:
    if path.suffix == ".csv":
        return pd.read_csv(path, keep_default_na=False)
    if path.suffix == ".jsonl":
        return pd.read_json(path, lines=True)
    return pd.read_parquet(path)


@pytest.mark.parametrize("strategy", ["record", "dataset"])
def test_capitals_of_an_unknown_word_do_not_matter(strategy: str) -> None:
    """With case=lower nothing tells whether two unknown words were written alike."""
    for _ in range(20):
        s = sanitizer("custext", strategy, policy=Policy(case="lower"))
        out = s.sanitize("Xyzzy xyzzy XYZZY w5")
        assert len(set(out.text.split()[:3])) == 1
        assert out.certificate.in_clear["repetition"]["count"] == 4


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_refuses_to_draw_the_same_data_set() -> None:
    s = sanitizer("random", "dataset")
    s.sanitize("w5")

    def child() -> str:
        kept = s.sanitize("w5").text
        try:
            return s.sanitize("w9").text
        except ParameterError as error:
            return f"{kept} {error}"

    said = in_forks(child, 2)
    assert len(set(said)) == 1
    assert s.sanitize("w5").text in said[0]
    assert "make the Sanitizer in the forked process" in said[0]


def test_a_word_keeps_its_draw_when_a_seeded_block_is_over() -> None:
    s = sanitizer("random", "dataset")
    before = s.sanitize("w5 w9 zzz").text
    with seeded(1):
        s.sanitize("w5")
    assert s.sanitize("w5 w9 zzz").text == before


def test_a_codebook_that_was_handed_over_keeps_its_draws_and_its_label() -> None:
    """As worker processes get it: what a seeded source drew stays marked, and nothing is added."""
    s = sanitizer("random", "dataset")
    with seeded(3):
        here = s.sanitize("w5 zzz").text
        data = s.chooser.__getstate__()
    book = Codebook.__new__(Codebook)
    book.__setstate__(data)
    s.chooser = book
    there = s.sanitize("w5 zzz")
    assert there.text == here
    assert there.certificate.randomness == "seeded: not private"
    with seeded(4), pytest.raises(ParameterError, match="draws of another process"):
        s.sanitize("w5")


def test_the_entry_about_repetition_must_be_there_and_fit() -> None:
    s = sanitizer("santext", "record")
    certificate = s.sanitize("w5 w5 w9")
    data = json.loads(certificate.certificate.to_json())
    for count in (None, 0, 99):
        forged = json.loads(json.dumps(data)) | {"digest": "x"}
        if count is None:
            del forged["in_clear"]["repetition"]
        else:
            forged["in_clear"]["repetition"]["count"] = count
        problems = Certificate.from_json(json.dumps(forged)).verify(s.space).problems
        assert any("repetition" in one for one in problems)


def test_words_of_a_summary_say_how_often_words_were_drawn(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("red blue red\n")
    done = run(
        "sanitize", tmp_path / "in.txt", "-o", tmp_path / "out.txt", "--mechanism", "random",
        "--epsilon", 1, "--strategy", "record", "--certificate", tmp_path / "c.json",
    )  # fmt: skip
    assert (
        b"2 of 3 tokens drawn from the mechanism (one draw for a word in a record)" in done.stderr
    )
    shown = Certificate.from_json((tmp_path / "c.json").read_text()).describe()
    assert "2 of 3 tokens, as different words, charged: " in shown


@pytest.mark.parametrize("strategy", ["record", "dataset"])
def test_a_break_keeps_what_can_be_gone_on_with_and_says_what_to_do(
    tmp_path: Path, strategy: str
) -> None:
    space = Space.from_arrays([f"w{i}" for i in range(40)], np.eye(40))
    space.save(tmp_path / "toy.space")
    (tmp_path / "in.txt").write_text("w3 w7 unheard w3\n" * 1_000_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "deniable", "sanitize", "in.txt", "-o", "out.txt", "--mechanism",
         "random", "--epsilon", "1", "--space", "toy.space", "--strategy", strategy],
        cwd=tmp_path, stderr=subprocess.PIPE,
    )  # fmt: skip
    journal = tmp_path / ".out.txt.deniable-journal.json"
    while not journal.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=60)[1].decode()
    left = sorted(path.name for path in tmp_path.iterdir() if "deniable-" in path.name)
    if process.returncode == 0:  # it was done before the signal came
        return
    assert process.returncode == 130
    assert ("--resume goes on" in error) == (strategy == "record")
    assert ("start anew" in error) == (strategy == "dataset")
    assert bool(left) == (strategy == "record")


def test_the_page_of_a_codebook_shows_nothing() -> None:
    s = sanitizer("random", "dataset")
    s.sanitize("w5 zzz")
    assert isinstance(s.chooser, Codebook)
    (page,) = s.chooser._pages.values()
    assert "drawn" not in repr(page)
    assert "key" not in repr(page)
