"""Branches of the robots of whole folders: for how many chains of six and seven joints they are all listed.

    python benchmarks/branches_robots.py FOLDER [FOLDER ...] [--poses 3] [--list]

Each folder holds URDF files, such as a clone of a public repository. Of each file, the chains from the root to a tip
with six or seven joints that move count; chains with the same joints and links count once. A chain gets all branches if
each target of a random pose has a list, no branch is missing that a solver finds from random starts, and none is wrong.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import verdicts

import synovia as sy
from synovia.comparison.branches import BranchRow, measure_branches
from synovia.errors import SynoviaError
from synovia.model import Kind

BARS = {6: 0.98, 7: 0.90}
EXACT = 1e-9


def chains(body: sy.Skeleton) -> Iterator[tuple[str, int, bytes]]:
    """Yield the tip, the number of moving joints, and a key of each chain of six or seven joints."""
    for tip in body.tip_rows:
        rows, row = list[int](), int(tip)
        while row >= 0:
            rows.append(row)
            row = int(body.parents[row])
        low, high = body.limits
        moving = [r for r in rows if body.joints[r].kind is not Kind.FIXED]
        if any(body.joints[r].kind not in (Kind.HINGE, Kind.SLIDE) for r in moving):
            continue
        places = [body.q_slice(body.joint_names[r]).start for r in moving]
        if len(moving) in BARS and (high[places] > low[places]).all():
            numbers = [np.concatenate([np.ravel(body.joints[r].rest), np.ravel(body.joints[r].axis)]) for r in moving]
            yield body.frame_names[tip], len(moving), np.round(numbers, 9).tobytes()


def main() -> None:
    """Print counts for each folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--poses", type=int, default=3)
    parser.add_argument("--list", action="store_true", help="print each chain that does not get all branches")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    whole, every = Counter[int](), Counter[int]()
    for folder in options.folders:
        counts, seen, unread = Counter[tuple[int, str]](), set[bytes](), 0
        for path in sorted(folder.rglob("*.urdf")):
            try:
                body = sy.load_skeleton(path)
                found = list(chains(body))
            except (SynoviaError, OSError):
                unread += 1
                continue
            for tip, count, key in found:
                if key in seen:
                    continue
                seen.add(key)
                row = next(iter(measure_branches(body, [tip], count=options.poses)))
                verdict = verdict_of(row)
                counts[count, verdict] += 1
                every[count] += 1
                whole[count] += verdict == "all"
                if options.list and verdict != "all":
                    print(f"{path.relative_to(folder)} {tip} ({count}): {verdict}; {row.refused or row}", flush=True)
        print(folder.name, dict(sorted(counts.items())), f"{unread} files not read", flush=True)
    text, held = verdicts(
        [
            (f"{n} joints: all branches for {whole[n]} of {every[n]} chains", whole[n] >= bar * every[n])
            for n, bar in BARS.items()
        ]
    )
    print(text)
    sys.exit(0 if held else 1)


def verdict_of(row: BranchRow) -> str:
    """Return whether a chain gets all branches, or why not."""
    if row.refused is not None:
        return "refused"
    if row.missing or row.short or row.branches < row.targets:
        return "missing"
    return "wrong" if row.error > EXACT else "all"


if __name__ == "__main__":
    main()
