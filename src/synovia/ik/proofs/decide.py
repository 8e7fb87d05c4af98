"""Decide whether a missed goal is out of reach: find a proof, or a pose that another solve can begin with."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from synovia.ik.interrupts import Watch
from synovia.ik.proofs.chain import Chain, chain_of
from synovia.ik.proofs.proof import Proof
from synovia.ik.proofs.search import Found, search
from synovia.model.geometry import Array

_SHARES: Final = (0.95, 0.7, 0.35)  # shares of the smallest distance found that proofs try to exclude, before the tolerance
_ROUNDING: Final = 1e-8  # more than the margin of the search, which is 1e-9 of the scale of a chain
_QUICK: Final = 20_000  # length of a proof of a share of the distance


class Decision(NamedTuple):
    """What is known about a miss.

    Args:
        proof: The proof that one of the goals is out of reach; None without one.
        start: Joint values (nq,) of a pose in which the missed position is met; None without one.
    """

    proof: Proof | None
    start: Array | None


def decide(solution: Any, watch: Watch) -> Decision:
    """Search for proofs of the missed positions of a solution, one goal after the other.

    Args:
        solution: A solution that misses a goal.
        watch: The deadline.
    """
    ik, q = solution.ik, np.asarray(solution.q)
    targets = solution.targets
    start: Array | None = None
    for g in solution.missed:
        goal, error = ik.goals[g], solution.errors[g].position
        near = goal.own_tolerance or ik.tolerance[0]
        if not near < error < math.inf:
            continue
        chain = chain_of(ik.reduced, ik.skeleton.joint_names, q, g)
        if chain is None:
            continue
        target = np.ascontiguousarray(targets[g, :3, 3])
        excluded, found = _farthest(chain, target, near, error, watch)
        if found.tokens is not None:
            unit = ik.skeleton.meters_per_unit
            of_chain = target, chain.fixed, chain.slides, chain.low, chain.high, found.tokens
            single = "length" if chain.freed().gap(target) > excluded else "limits"
            kind = single if len(found.tokens) == 1 else "search"
            proof = Proof(kind, goal.label, excluded, error, math.nan if unit is None else unit, *of_chain)
            return Decision(proof.sealed(), None)
        if found.q is not None and min(chain.places) >= 0 and start is None:
            start = q.copy()
            start[[*chain.places]] = found.q
    return Decision(None, start)


def _farthest(chain: Chain, target: Array, near: float, miss: float, watch: Watch) -> tuple[float, Found]:
    """Search for a proof of a large share of the miss, then of the tolerance alone; return the distance as well."""
    gap = chain.gap(target) - _ROUNDING * chain.scale
    for distance in sorted({share * miss for share in _SHARES} | {gap}, reverse=True):
        if distance > near:
            found = search(chain, target, distance, watch, _QUICK)
            if found.tokens is not None:
                return distance, found
    return near, search(chain, target, near, watch)
