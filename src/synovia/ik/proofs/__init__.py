"""Proofs that a target is out of reach: the chain, the search, the proof, and its independent checker."""

from synovia.ik.proofs.proof import Proof
from synovia.ik.proofs.together import SharedProof

__all__ = ["Proof", "SharedProof"]
