"""What an attacker sees unchanged under a policy, in sentences for the certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from deniable.length import length_of

if TYPE_CHECKING:
    from deniable.policy import Policy

#: What a token is counted under in a certificate.
KINDS = (
    "word",
    "unknown word",
    "number",
    "email",
    "url",
    "identifier",
    "symbol",
    "stop word",
    "public word",
    "lone clitic",
)

SEEN_IN_FULL = "pass unchanged and are seen in full"

Entry = dict[str, int | str]


def describe(policy: Policy, counts: Mapping[str, int]) -> dict[str, Entry]:
    """Each thing that passes or leaks with its count; things that did not occur are left out,
    except the length, which is always seen.
    """
    tokens = sum(counts.get(kind, 0) for kind in KINDS)
    entries: dict[str, Entry] = {
        "length": {"count": tokens, "what": length_of(policy.length).seen()}
    }
    for key, sentence in _SENTENCES.items():
        what = sentence(policy)
        if what and counts.get(key, 0):
            entries[key] = {"count": counts[key], "what": what}
    return entries


def _treated(setting: str, what: str) -> Callable[[Policy], str]:
    """What is seen of a kind that a setting keeps, masks or draws."""

    def sentence(policy: Policy) -> str:
        treatment = getattr(policy, setting)
        if treatment == "keep":
            return f"{what} {SEEN_IN_FULL}"
        if treatment == "mask":
            return f"where {what} stood is seen, and nothing else of them"
        return f"{what} become uniform draws: that one stood there may show, never which"

    return sentence


def _numbers(policy: Policy) -> str:
    if policy.numbers == "digits":
        return "the length and the separators of numbers are seen; every digit is fresh"
    if policy.numbers == "words":
        return _treated("unknown", "numbers that are not in the space")(policy)
    return _treated("numbers", "numbers")(policy)


def _gap(setting: str, kept: str, changed: str) -> Callable[[Policy], str]:
    def sentence(policy: Policy) -> str:
        if getattr(policy, setting) == "keep":
            return kept
        return "" if policy.even_gaps and setting != "case" else changed

    return sentence


_SENTENCES: dict[str, Callable[[Policy], str]] = {
    "unknown word": _treated("unknown", "words that are not in the space"),
    "number": _numbers,
    "email": _treated("emails", "e-mail addresses"),
    "url": _treated("urls", "URLs"),
    "identifier": _treated("identifiers", "identifiers"),
    "symbol": _treated("symbols", "symbols"),
    "stop word": lambda _: f"stop words {SEEN_IN_FULL}",
    "public word": lambda _: f"words declared public {SEEN_IN_FULL}",
    "clitic": lambda _: "the clitics of these words, such as 's and n't, pass unchanged",
    "lone clitic": lambda _: "clitics written as words of their own pass unchanged",
    "case pattern": _gap(
        "case",
        "the capitals and curly apostrophes of these words are seen, and that others had none",
        "",
    ),
    "white space": _gap(
        "whitespace", "white space passes unchanged", "where white space stood is seen"
    ),
    "punctuation": _gap(
        "punctuation", "punctuation passes unchanged", "that something parted two words is seen"
    ),
    "signs": _gap(
        "punctuation",
        "ASCII symbols and currency signs pass unchanged",
        "that something parted two words is seen",
    ),
}
