"""Every exception that deniable raises on purpose.

    DeniableError                the root; exit code 2 unless said otherwise
    |-- ParameterError           a parameter is missing, unknown or out of range (also a ValueError)
    |-- UnknownMechanismError    no mechanism of that name; says the nearest one
    |-- SpaceError               a space is empty, not finite, or not fit for the mechanism
    |-- PolicyError              a policy's setting is unknown or contradicts itself
    |-- InputError               a file is missing, broken or in the wrong encoding
    |-- CertificateError         a certificate can't be read
    |-- NoTableError             a mechanism of continuous noise has no table of probabilities
    |-- MissingExtraError        an optional part isn't installed; carries the install line
    |-- LedgerError              a ledger can't be opened, isn't one, or doesn't fit the call
    |   |-- LedgerDownError      its database doesn't answer; a run that it broke can be resumed
    |   `-- ForgottenError       words were forgotten while they were used; resume, or run again
    `-- PromiseError             a promise doesn't hold, or a budget refuses; exit code 1
        `-- BudgetError          a subject's budget refuses a record; exit code 1

No message ever carries private text: it names the file, the line, the column and the size, never
the content. A refusal names the subject, because that is what it is about.
"""

from __future__ import annotations


class DeniableError(Exception):
    """The root of the tree."""

    exit_code = 2
    # Whether a broken run is worth going on with once the cause is mended outside of it.
    resumable = False


class ParameterError(DeniableError, ValueError):
    """A parameter is missing, unknown or out of range."""


class UnknownMechanismError(ParameterError):
    """No mechanism of that name is registered."""


class SpaceError(DeniableError, ValueError):
    """A space is empty, not finite, or not fit for the mechanism."""


class PolicyError(ParameterError):
    """A policy's setting is unknown or contradicts itself."""


class InputError(DeniableError, ValueError):
    """A file is missing, broken or in the wrong encoding."""


class CertificateError(DeniableError, ValueError):
    """A certificate can't be read."""


class NoTableError(DeniableError, NotImplementedError):
    """A mechanism of continuous noise has no table of probabilities."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} adds continuous noise, so there is no table of probabilities: sample() draws, "
            "certify() audits its theorem"
        )


class MissingExtraError(DeniableError, ImportError):
    """An optional part isn't installed."""

    def __init__(self, need: str, extra: str) -> None:
        super().__init__(f"{need} is not installed: pip install 'deniable[{extra}]'")
        self.extra = extra


class LedgerError(DeniableError):
    """A ledger can't be opened, isn't one, or doesn't fit the call."""


class LedgerDownError(LedgerError):
    """A ledger's database doesn't answer."""

    resumable = True


class ForgottenError(LedgerError):
    """Words that were free when a batch was paid for were forgotten before it was drawn."""

    resumable = True

    def __init__(self, ledger: str) -> None:
        super().__init__(
            f"{ledger}: remembered words were forgotten while they were used; run it again, and "
            "they are paid for"
        )
        self.ledger = ledger

    def __reduce__(self) -> tuple[type[ForgottenError], tuple[str]]:
        """Survive the way from a worker process."""
        return ForgottenError, (self.ledger,)


class PromiseError(DeniableError):
    """A promise doesn't hold, or a budget refuses."""

    exit_code = 1


class BudgetError(PromiseError):
    """A subject's budget refuses a record."""

    resumable = True

    def __init__(self, subject: str, spent: float, asked: float, budget: float) -> None:
        self.subject, self.spent, self.asked, self.budget = subject, spent, asked, budget
        super().__init__(
            f"{self.short()}; raise the budget with `deniable ledger set-budget`, or leave such "
            "records out with --on-refusal skip"
        )

    def short(self) -> str:
        """Say whom, how much, and of what."""
        return (
            f"the budget of {self.subject!r} refuses: {self.spent:.6g} of epsilon "
            f"{self.budget:.6g} is spent, and {self.asked:.6g} is asked"
        )

    def __reduce__(self) -> tuple[type[BudgetError], tuple[str, float, float, float]]:
        """Survive the way from a worker process."""
        return BudgetError, (self.subject, self.spent, self.asked, self.budget)
