"""Differentially private text sanitization with a promise that anyone can recompute.

>>> from deniable import Sanitizer
>>> out = Sanitizer(mechanism="custext", epsilon=1.0).sanitize("Alice flew to Paris.")
>>> out.certificate.verify(Space.default()).holds
True
"""

# The package is imported first, so that it can't take the name of the function later.
import deniable.mechanisms  # noqa: F401
from deniable.certificate import Certificate
from deniable.certify import Certification
from deniable.errors import DeniableError
from deniable.guarantee import Guarantee, Relation
from deniable.mechanism import Kernel, Mechanism, mechanism, mechanisms, register
from deniable.policy import Policy
from deniable.presets import PRESETS
from deniable.sanitizer import Sanitized, Sanitizer
from deniable.space import Space
from deniable.verification import Verification

__all__ = [
    "PRESETS",
    "Certificate",
    "Certification",
    "DeniableError",
    "Guarantee",
    "Kernel",
    "Mechanism",
    "Policy",
    "Relation",
    "Sanitized",
    "Sanitizer",
    "Space",
    "Verification",
    "mechanism",
    "mechanisms",
    "register",
]
