"""What releases cost together: accounting, and the ledger that enforces a budget.

release.py      one release as data: pure, approximate, Gaussian
cost.py         what many cost, as numbers that add up; the bounds with a closed form
gaussian.py     Gaussian trade-offs: from mu to (epsilon, delta)
renyi.py        Renyi divergences of one release
numerical.py    Renyi and privacy-loss distributions, through dp-accounting
paper.py        what Mo (2022) states, each marked as a bound or an approximation
methods.py      all of these by name; the best valid one

>>> from deniable.budget import Pure, account
>>> [found.method.name for found in account({Pure(1.0): 3}, 0.0) if found.best]
['basic']
"""

from deniable.budget.cost import Cost, Spent
from deniable.budget.methods import Account, Method, account, methods
from deniable.budget.release import Approximate, Composition, Gaussian, Pure, Release, compose

__all__ = [
    "Account",
    "Approximate",
    "Composition",
    "Cost",
    "Gaussian",
    "Method",
    "Pure",
    "Release",
    "Spent",
    "account",
    "compose",
    "methods",
]
