"""Reading and writing vectors: what is written comes back, and what is broken is named."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deniable.errors import SpaceError
from deniable.spaces import formats
from deniable.spaces.formats import Parts, read, write

FINITE = st.floats(-(2.0**99), 2.0**99, width=32, allow_nan=False)
# What a line of text can hold: no spaces of ASCII, no line break, no half surrogates.
LINE_WORDS = st.text(st.characters(codec="utf-8", exclude_characters=" \t\n\r\v\f"), min_size=1)
ANY_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1)


def make(words: st.SearchStrategy[str], columns: int = 1) -> st.SearchStrategy[Parts]:
    """Parts of one to six different words."""
    lists = st.lists(words, min_size=1, max_size=6, unique=True)

    def fill(names: list[str]) -> st.SearchStrategy[Parts]:
        shapes = st.tuples(st.just(len(names)), st.integers(columns, 4))
        arrays = shapes.flatmap(lambda shape: hnp.arrays(np.float32, shape, elements=FINITE))
        return arrays.map(lambda rows: Parts(tuple(names), rows, "angular", "test", None))

    return lists.flatmap(fill)


def same(found: Parts, wanted: Parts) -> bool:
    return found.words == wanted.words and np.array_equal(found.vectors, wanted.vectors)


def text_of(parts: Parts, ending: str = "\n") -> str:
    rows = zip(parts.words, parts.vectors.tolist(), strict=True)
    return "".join(f"{word} {' '.join(map(repr, row))}{ending}" for word, row in rows)


def binary_of(parts: Parts, after: bytes = b"\n") -> bytes:
    header = f"{len(parts.words)} {parts.vectors.shape[1]}\n".encode()
    rows = zip(parts.words, parts.vectors, strict=True)
    return header + b"".join(w.encode() + b" " + row.tobytes() + after for w, row in rows)


@given(make(ANY_WORDS))
def test_own_format_gives_back_every_bit(parts: Parts) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "test.space"
        write(path, parts)
        found = read(path)
        assert same(found, parts)
        assert (found.metric, found.name) == ("angular", "test")
        assert [entry.name for entry in Path(folder).iterdir()] == ["test.space"]


@given(make(LINE_WORDS), st.sampled_from(["\n", " \n", "\r\n"]))
def test_glove_text_gives_back_every_bit(parts: Parts, ending: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "test.txt"
        path.write_bytes(text_of(parts, ending).encode())
        assert same(read(path), parts)


@given(make(LINE_WORDS), st.sampled_from(["\n", " \n"]))
def test_word2vec_text_gives_back_every_bit(parts: Parts, ending: str) -> None:
    header = f"{len(parts.words)} {parts.vectors.shape[1]}\n"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "test.vec"
        path.write_bytes((header + text_of(parts, ending)).encode())
        assert same(read(path), parts)


@given(make(LINE_WORDS), st.sampled_from([b"\n", b""]))
def test_word2vec_binary_gives_back_every_bit(parts: Parts, after: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "test.bin"
        path.write_bytes(binary_of(parts, after))
        assert same(read(path), parts)


@given(make(LINE_WORDS), st.data())
def test_word2vec_binary_cut_anywhere_is_refused(parts: Parts, data: st.DataObject) -> None:
    whole = binary_of(parts, b"")
    start = whole.index(b"\n") + 1
    cut = data.draw(st.integers(start, len(whole) - 1))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "test.bin"
        path.write_bytes(whole[:cut])
        with pytest.raises(SpaceError, match=r"cut short|empty|no word"):
            read(path)


@given(make(LINE_WORDS), st.integers(1, 8))
def test_a_limit_keeps_the_first_rows(parts: Parts, limit: int) -> None:
    wanted = Parts(parts.words[:limit], parts.vectors[:limit], None, "", None)
    with TemporaryDirectory() as folder:
        for name, content in (("a.txt", text_of(parts).encode()), ("a.bin", binary_of(parts))):
            path = Path(folder) / name
            path.write_bytes(content)
            assert same(read(path, limit), wanted)
        write(Path(folder) / "a.space", parts)
        assert same(read(Path(folder) / "a.space", limit), wanted)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_npz_of_every_float(tmp_path: Path, kind: type) -> None:
    np.savez(tmp_path / "a.npz", words=np.array(["red", "blue"]), vectors=np.eye(2, dtype=kind))
    found = read(tmp_path / "a.npz")
    assert found.words == ("red", "blue")
    assert found.vectors.dtype == np.float32
    assert found.vectors.tolist() == [[1, 0], [0, 1]]


def test_binary_without_the_suffix_is_recognised(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((3, 20)).astype(np.float32)
    parts = Parts(("red", "blue", "green"), rows, None, "", None)
    (tmp_path / "vectors").write_bytes(binary_of(parts))
    assert same(read(tmp_path / "vectors"), parts)


def test_words_with_spaces_are_split_from_the_right(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the 1 2\n. . . 3 4\nat name@example.org 5 6\n7 7 8\n")
    found = read(tmp_path / "a.txt")
    assert found.words == ("the", ". . .", "at name@example.org", "7")
    assert found.vectors.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


def test_many_blocks_with_an_odd_line_in_one(tmp_path: Path) -> None:
    lines = [f"w{i} {i} {i + 0.5}" for i in range(10_000)]
    lines[7000] = "two words 1 2"
    (tmp_path / "a.txt").write_text("\n".join(lines))  # and no line break at the end
    found = read(tmp_path / "a.txt")
    assert found.words[7000] == "two words"
    assert found.vectors[[0, 6999, 7001, 9999], 0].tolist() == [0, 6999, 7001, 9999]


def test_own_format_is_memory_mapped(tmp_path: Path) -> None:
    write(tmp_path / "a", Parts(("red",), np.ones((1, 2), np.float32), None, "a", 0.0))
    found = read(tmp_path / "a")
    assert isinstance(found.vectors, np.memmap)
    assert (found.metric, found.diameter) == ("euclidean", 0.0)


@given(make(ANY_WORDS))
def test_int8_is_off_by_at_most_half_a_step(parts: Parts) -> None:
    stored, scale = formats.quantise(parts.vectors)
    off = np.abs(formats.restore(stored, scale, unit=False) - parts.vectors)
    # Half a step of 1/127 of the column's largest number, and what float32 itself rounds.
    assert (off <= np.abs(parts.vectors).max(axis=0) * (0.5 / 127 + 1e-5) + 1e-37).all()


def test_unit_rows_have_unit_length(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((50, 9)).astype(np.float32)
    parts = Parts(tuple(f"w{i}" for i in range(50)), rows, "euclidean", "a", None)
    write(tmp_path / "a", parts, int8=True, unit=True, notes={"licence": "none"})
    found = read(tmp_path / "a")
    assert np.allclose(np.linalg.norm(found.vectors.astype(float), axis=1), 1, atol=2e-7)
    assert np.load(tmp_path / "a" / "vectors.npy").dtype == np.int8
    meta = json.loads((tmp_path / "a" / "meta.json").read_text())
    assert meta["licence"] == "none"
    far = found.vectors.astype(float)
    brute = np.sqrt(((far[:, None] - far[None]) ** 2).sum(axis=2)).max()
    assert found.diameter == pytest.approx(brute, rel=1e-12)


def test_a_row_that_rounds_to_nothing_is_no_nan(tmp_path: Path) -> None:
    rows = np.array([[1, 1], [1e-6, 1e-6]], dtype=np.float32)
    write(tmp_path / "a", Parts(("big", "tiny"), rows, None, "a", None), int8=True, unit=True)
    assert read(tmp_path / "a").vectors[1].tolist() == [0, 0]


def test_writing_again_replaces_the_old_space(tmp_path: Path) -> None:
    for word in ("red", "blue"):
        write(tmp_path / "a", Parts((word,), np.ones((1, 2), np.float32), None, "a", None))
    assert read(tmp_path / "a").words == ("blue",)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = Parts(("red",), np.ones((1, 2), np.float32), None, "a", None)
    write(tmp_path / "a", parts)

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(SpaceError, match="No space left"):
        write(tmp_path / "a", Parts(("blue",), parts.vectors, None, "a", None))
    assert read(tmp_path / "a").words == ("red",)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_is_no_space_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with pytest.raises(SpaceError, match="is no space"):
        write(tmp_path / "photos", Parts(("a",), np.ones((1, 1), np.float32), None, "a", None))


def test_repeated_words_are_counted_and_the_first_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("red 1\nblue 2\nred 3\nred 4\n")
    with pytest.warns(UserWarning, match="2 repeated words"):
        found = read(tmp_path / "a.txt")
    assert found.words == ("red", "blue")
    assert found.vectors.tolist() == [[1], [2]]


BROKEN = {
    "empty": (b"", "empty"),
    "only a word": (b"word\n", "no numbers"),
    "too few numbers": (b"a 1 2 3\nb 1 2\n", "line 2 doesn't hold a word and 3"),
    "too many numbers": (b"a 1 2\nb 1 2 3\n", "line 2 doesn't hold a word and 2"),
    "one too few, one too many": (b"a 1 2\nb 1\nc 1 2 3\n", "line 2"),
    "no number": (b"a 1 2\nb 1 x\n", "line 2"),
    "not a number": (b"a 1 2\nblue nan 2\n", r"row 2 \('blue'\)"),
    "infinite": (b"a 1 2\nb 1 2\nblue 1 inf\n", r"row 3 \('blue'\)"),
    "too large for float32": (b"a 1 2\nblue 1 1e39\n", r"row 2 \('blue'\)"),
    "not UTF-8": (b"a 1 2\n\xff\xfe 1 2\n", "line 2 isn't UTF-8"),
    "no word": (b"a 1 2\n 1 2\n", "line 2"),
    "blank line": (b"a 1 2\n\nb 1 2\n", "line 2"),
    "fewer rows than the header says": (b"3 2\na 1 2\nb 1 2\n", "header says 3"),
    "more rows than the header says": (b"1 2\na 1 2\nb 1 2\n", "header says 1"),
    "header alone": (b"3 2\n", "header says 3"),
    "no columns": (b"1 0\na\n", "no numbers"),
    "broken zip": (b"PK\x03\x04 and then nothing", "broken"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_named(tmp_path: Path, name: str) -> None:
    content, message = BROKEN[name]
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(SpaceError, match=message) as caught:
        read(tmp_path / "a.txt")
    assert "\n" not in str(caught.value)


def test_an_absurd_header_allocates_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"999999999999 300\nword \0\0\0\0")
    with pytest.raises(SpaceError, match="don't fit"):
        read(tmp_path / "a.bin")


def test_no_pickle_is_ever_loaded(tmp_path: Path) -> None:
    words = np.array(["red", "blue"], dtype=object)
    np.savez(tmp_path / "a.npz", words=words, vectors=np.eye(2))
    with pytest.raises(SpaceError, match="refused"):
        read(tmp_path / "a.npz")
    write(tmp_path / "a", Parts(("red",), np.ones((1, 1), np.float32), None, "a", None))
    (tmp_path / "a" / "vectors.npy").write_bytes(pickle.dumps([1.0]))
    with pytest.raises(SpaceError, match="broken"):
        read(tmp_path / "a")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"words": np.array(["a"])}, "needs the arrays"),
        ({"words": np.array([1]), "vectors": np.eye(1)}, "list of text"),
        ({"words": np.array(["a"]), "vectors": np.ones(1)}, "matrix of floats"),
        ({"words": np.array(["a"]), "vectors": np.ones((1, 1), int)}, "matrix of floats"),
        ({"words": np.array(["a"]), "vectors": np.eye(2)}, "1 words but 2 vectors"),
        ({"words": np.array([], str), "vectors": np.ones((0, 2))}, "no word vectors"),
        ({"words": np.array(["a", ""]), "vectors": np.eye(2)}, "row 2 has an empty word"),
        ({"words": np.array(["a\nb"]), "vectors": np.eye(1)}, "row 1 .* line break"),
        ({"words": np.array(["a"]), "vectors": np.array([[1e300]])}, "row 1 .* infinity"),
    ],
)
def test_npz_that_does_not_fit(tmp_path: Path, arrays: dict[str, object], message: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(SpaceError, match=message):
        read(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format 2 is unknown"),
        ({"size": 3}, "doesn't agree"),
        ({"dimension": 3}, "doesn't agree"),
        ({"diameter": float("nan")}, "wrong kind"),
        ({"diameter": -1}, "wrong kind"),
        ({"name": 7}, "wrong kind"),
    ],
)
def test_own_format_with_a_wrong_entry(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    write(tmp_path / "a", Parts(("red", "blue"), np.eye(2, dtype=np.float32), None, "a", None))
    meta = json.loads((tmp_path / "a" / "meta.json").read_text())
    (tmp_path / "a" / "meta.json").write_text(json.dumps(meta | change))
    with pytest.raises(SpaceError, match=message):
        read(tmp_path / "a")


@pytest.mark.parametrize("lost", ["meta.json", "words.txt", "vectors.npy"])
def test_own_format_with_a_file_lost(tmp_path: Path, lost: str) -> None:
    write(tmp_path / "a", Parts(("red",), np.ones((1, 1), np.float32), None, "a", None))
    (tmp_path / "a" / lost).unlink()
    with pytest.raises(SpaceError):
        read(tmp_path / "a")


def test_what_cannot_be_written_is_refused_before_anything_is(tmp_path: Path) -> None:
    for words, value in ((("a\nb",), 1.0), (("",), 1.0), (("a",), np.nan), (("\ud800",), 1.0)):
        with pytest.raises(SpaceError):
            write(tmp_path / "a", Parts(words, np.full((1, 1), value, np.float32), None, "a", None))
    assert not list(tmp_path.iterdir())


def test_a_missing_file_and_a_limit_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(SpaceError, match="No such file"):
        read(tmp_path / "nothing.txt")
    with pytest.raises(SpaceError, match="keep at least one"):
        read(tmp_path / "nothing.txt", limit=0)
    with pytest.raises(SpaceError, match="can't be written to"):
        parts = Parts(("a",), np.ones((1, 1), np.float32), None, "a", None)
        write(tmp_path / "no folder" / "a", parts)
