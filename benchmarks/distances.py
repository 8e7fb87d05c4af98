"""Signed distances of random pairs of shapes: time, laws, and the differences from coal, for each pair of kinds.

    PYTHONPATH=tests python benchmarks/distances.py                 # 10^6 pairs of each kind
    PYTHONPATH=tests python benchmarks/distances.py --pairs 20000 --coal 4000

Pairs come from 300 random shapes of each kind, as large as they are far apart. ``law`` is the largest error of moving
the first shape along the normal until both are apart: the distance grows by as much. It is measured on every hundredth
pair. coal, if it is installed, is asked for the first pairs of each kind.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec

import numpy as np
from coal_solids import geometry

import synovia as sy
from synovia.kernels import layout
from synovia.model.shapes.distances import contact_rows, pack_shapes
from test_distances import PAIRS, WORDS, along, some

SHAPES = 300  # of each kind


def main() -> None:
    """Print a row for each pair of kinds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000, help="of each kind")
    parser.add_argument("--coal", type=int, default=0, help="pairs of each kind that coal is asked for")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    shapes = [some(word, rng) for word in WORDS for _ in range(SHAPES)]
    packed = pack_shapes(shapes)
    peers = given.coal if find_spec("coal") else 0
    print("| pair | us | law | apart, against coal | overlapping, against coal |\n|---|---|---|---|---|")
    for a, b in PAIRS:
        rows = [WORDS.index(word) * SHAPES + rng.integers(0, SHAPES, given.pairs) for word in (a, b)]
        pairs = np.stack(rows, 1).astype(np.int32)
        contact_rows(packed, pairs[:1])
        begun = time.perf_counter()
        found = contact_rows(packed, pairs)
        spent = time.perf_counter() - begun
        law, apart, deep = 0.0, 0.0, 0.0
        normals = found[:, layout.CONTACT_NORMAL : layout.CONTACT_NORMAL + 3]
        for (i, j), d, n in list(zip(pairs, found[:, layout.GAP_SIZE], normals, strict=True))[::100]:
            t = 0.1 + max(0.0, -d)
            moved = sy.shapes.distance(shapes[i], shapes[j], transform_a=along(t * n)).distance
            law = max(law, abs(moved - d - t))
        for (i, j), d in zip(pairs[:peers], found[:peers, layout.GAP_SIZE], strict=True):
            import coal

            places = [coal.Transform3s(T[:3, :3], T[:3, 3]) for T in (shapes[i].place(), shapes[j].place())]
            asked, answer = coal.DistanceRequest(), coal.DistanceResult()
            asked.enable_signed_distance = True
            theirs = coal.distance(geometry(shapes[i]), places[0], geometry(shapes[j]), places[1], asked, answer)
            apart, deep = (max(apart, abs(d - theirs)), deep) if d >= 0.0 else (apart, max(deep, abs(d - theirs)))
        compared = f"{apart:.1e} | {deep:.1e}" if peers else "- | -"
        print(f"| {a}, {b} | {1e6 * spent / len(pairs):.2f} | {law:.1e} | {compared} |", flush=True)


if __name__ == "__main__":
    main()
