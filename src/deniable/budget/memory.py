"""Memory: a word of a subject is drawn once, and the same replacement is given ever after.

Whoever asks for a text again and again then sees the same answer each time: later draws are
post-processing of the first one, and cost nothing. Without it N answers cost N times epsilon, and
the most frequent answer is soon the word itself (the query attack of Chen et al. 2023).

Nothing of a word can be read from the ledger without the key. A row is found by a keyed hash of
subject, settings and word; what was drawn is encrypted with AES-GCM and bound to its row. What was
drawn under other settings (mechanism, parameters, space) is another row: it was promised less or
more, and is paid for by itself.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from deniable.budget.database import lock, lock_all
from deniable.budget.key import derived
from deniable.budget.ledger import Ledger, check_subject
from deniable.budget.schema import KEYS, WORDS
from deniable.errors import LedgerError
from deniable.sampling import randomness

# A subject, and the hash of one of its words.
Place = tuple[str, bytes]
HASH, NONCE, DRAW = 16, 12, 8
ROWS = 20_000
# So few words are asked for one by one; of more, all that the subject has are read.
FEW = 500


class Memory:
    """The remembered words of a ledger, under one key and for one set of settings."""

    def __init__(self, ledger: Ledger, key: bytes, settings: str) -> None:
        self._ledger = ledger
        self._cipher = AESGCM(derived(key, "replacements"))
        self._hash = derived(key, "words")
        self._settings = hashlib.sha256(settings.encode()).digest()[:HASH]
        self._check_key(derived(key, "fingerprint"))

    def __repr__(self) -> str:
        return "<Memory>"

    @property
    def name(self) -> str:
        """What messages call its ledger."""
        return self._ledger.name

    def _check_key(self, fingerprint: bytes) -> None:
        """Refuse another key than the one that was used before: it would find nothing."""
        with self._ledger.transaction() as connection:
            lock_all(connection)
            known = connection.execute(select(KEYS.c.fingerprint)).scalar()
            if known is None:
                connection.execute(insert(KEYS), {"id": 1, "fingerprint": fingerprint})
            elif not hmac.compare_digest(bytes(known), fingerprint):
                raise LedgerError(
                    f"{self._ledger.name}: its words were remembered under another key; use that "
                    "one, since with a new one every word would be drawn (and charged) again"
                )

    def place(self, subject: str, word: str | int) -> Place:
        """Return where the replacement of a subject's word is found: a number for one of the
        space, the word itself for any other."""
        # What a seed has drawn is never given out as drawn at random. A number has no quotes, so no
        # word can pass for one.
        named = f"{word}" if isinstance(word, int) else f"'{word}'"
        parts = [part.encode("utf-8", "surrogatepass") for part in (randomness().label, subject)]
        message = self._settings + b"".join(len(p).to_bytes(4, "big") + p for p in parts)
        message += named.encode("utf-8", "surrogatepass")
        return subject, hashlib.blake2b(message, digest_size=HASH, key=self._hash).digest()

    def recall(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return what is remembered of these."""
        wanted: dict[str, set[bytes]] = {}
        for subject, word in places:
            wanted.setdefault(subject, set()).add(word)
        with self._ledger.reading() as connection:
            return self._found(connection, wanted)

    def _found(self, connection: Connection, wanted: Mapping[str, set[bytes]]) -> dict[Place, int]:
        found = {}
        for subject, words in wanted.items():
            query = select(WORDS.c.word, WORDS.c.replacement).where(WORDS.c.subject == subject)
            if len(words) <= FEW:
                query = query.where(WORDS.c.word.in_(words))
            for word, replacement in connection.execute(query):
                if (known := bytes(word)) in words:
                    found[subject, known] = self._decrypt((subject, known), bytes(replacement))
        return found

    def remember(self, drawn: Mapping[Place, int]) -> dict[Place, int]:
        """Keep what was drawn, where nothing was kept before, and return what holds now."""
        wanted: dict[str, set[bytes]] = {}
        for subject, word in drawn:
            wanted.setdefault(subject, set()).add(word)
        with self._ledger.transaction() as connection:
            lock(connection, list(wanted))
            rows = [self._row(place, draw) for place, draw in drawn.items()]
            # Whoever was first is right: two draws of one word would be two answers.
            dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
            for start in range(0, len(rows), ROWS):
                statement = dialect.insert(WORDS).on_conflict_do_nothing()
                connection.execute(statement, rows[start : start + ROWS])
            return self._found(connection, wanted)

    def _row(self, place: Place, draw: int) -> dict[str, object]:
        subject, word = place
        nonce = os.urandom(NONCE)
        secret = self._cipher.encrypt(nonce, draw.to_bytes(DRAW, "big"), _bound(place))
        return {"subject": subject, "word": word, "replacement": nonce + secret}

    def _decrypt(self, place: Place, secret: bytes) -> int:
        try:
            plain = self._cipher.decrypt(secret[:NONCE], secret[NONCE:], _bound(place))
        except InvalidTag:
            plain = None
        if plain is None:
            raise LedgerError(
                f"{self._ledger.name}: a remembered word was changed; restore it from a copy"
            )
        return int.from_bytes(plain, "big")


def forget(ledger: Ledger, subject: str) -> int:
    """Erase what is remembered of a subject's words; return how many there were."""
    check_subject(subject)
    with ledger.transaction() as connection:
        lock(connection, [subject])
        mine = WORDS.c.subject == subject
        count = connection.execute(select(func.count()).select_from(WORDS).where(mine)).scalar_one()
        connection.execute(delete(WORDS).where(mine))
    return int(count)


def _bound(place: Place) -> bytes:
    subject, word = place
    return subject.encode("utf-8", "surrogatepass") + word
