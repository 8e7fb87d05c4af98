"""Proofs that a target is out of reach: the chain, the search, the proof, and its independent checker."""

from synovia.ik.proofs.proof import Proof

__all__ = ["Proof"]
