"""Chains of moving joints that begin at one link, such as fingers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from synovia.model.anatomy.names import words_of
from synovia.model.geometry import Array, magnitude
from synovia.model.joint import Kind
from synovia.model.loops.loop import Loop
from synovia.model.skeleton import Skeleton
from synovia.model.tree import ancestors

MOST: Final = 8  # largest number of chains of a palm
# largest number of chains that share their first joints, such as two fingers on one bone of the palm
_PER_BRANCH: Final = 2
_TIP_WORDS: Final = frozenset({"tip", "end", "nub", "site", "head"})
# fraction of the largest distance between bases: chains that begin nearer may belong to one finger
_NEAR: Final = 0.65
_LAST: Final = 0.8  # length of a last segment without a tip frame, relative to the segment before it
_PARALLEL: Final = 0.95  # cosine between axes of a linkage, above which they count as parallel


class Chain(NamedTuple):
    """A finger as the rows of its joints.

    Attributes:
        rows: Rows of the moving joints, from base to tip.
        tip: Row of the joint whose frame carries the tip.
        offset: Position of the tip in this frame, (3,).
        estimated: Whether the tip is estimated, because no frame of the file marks it.
        base: Position of the first joint at rest, (3,).
        end: Position of the tip at rest, (3,).
    """

    rows: tuple[int, ...]
    tip: int
    offset: Array
    estimated: bool
    base: Array
    end: Array

    @property
    def along(self) -> Array:
        """Direction from base to tip, (3,)."""
        way = self.end - self.base
        return way / max(magnitude(way), 1e-12)

    @property
    def middle(self) -> Array:
        """Midpoint between base and tip, (3,)."""
        return 0.5 * (self.base + self.end)


class Chains:
    """The chains of moving joints of a skeleton.

    Args:
        skeleton: The skeleton.
    """

    def __init__(self, skeleton: Skeleton) -> None:
        """Find the moving joints, and the number of chains that end at or below each joint."""
        self.skeleton = skeleton
        frames = np.array(skeleton.rest_pose().frames)
        self.frames = np.concatenate([frames[:, :9].reshape(-1, 3, 3), frames[:, 9:, None]], axis=2)  # (n, 3, 4)
        self.moves = [self._is_moving(row) for row in range(len(skeleton))]
        self._axes = [self._axis(row) for row in range(len(skeleton))]
        self.ends = [0] * len(skeleton)  # number of chains that end at or below a row
        for row in reversed(range(len(skeleton))):
            below = sum(self.ends[child] for child in skeleton.children[row])
            self.ends[row] = below or int(self.moves[row])

    def _is_moving(self, row: int) -> bool:
        """Return whether a joint moves a part of the body; end points that files store as joints do not."""
        joint = self.skeleton.joints[row]
        if joint.kind in (Kind.FIXED, Kind.FREE):
            return False
        is_end = joint.kind is Kind.BALL and not self.skeleton.children[row]
        return not (is_end and _TIP_WORDS & words_of(joint.name))

    def branches(self, row: int) -> list[int]:
        """Return the children of a row that have moving joints at or below them."""
        return [child for child in self.skeleton.children[row] if self.ends[child]]

    def palms(self, within: int | None = None) -> list[int]:
        """Return the topmost rows with at least two branches, each of one or two chains.

        Args:
            within: Row at or below which to search; None for the whole skeleton.
        """
        found: list[int] = []
        for row in range(len(self.skeleton)):
            line = ancestors(self.skeleton.parents, row)
            if (within is not None and within not in line) or set(line) & set(found):
                continue
            branches = self.branches(row)
            # each loop may add a bar of a linkage, which counts as a chain
            fits = len(branches) > 1 and self.ends[row] <= MOST + len(self.skeleton.loops)
            if fits and all(self.ends[child] <= _PER_BRANCH for child in branches):
                found.append(row)
        return found

    def below(self, palm: int) -> list[Chain]:
        """Return the chains below a palm, in the order of the file."""
        return [self.chain(row, palm) for row in range(palm + 1, len(self.skeleton)) if self._ends_at(row, palm)]

    def fingers(self, palm: int) -> list[Chain]:
        """Return the chains below a palm that may be fingers, without bars of linkages and without motors."""
        return self.without_linkages(self.below(palm))[0]

    def are_hinges(self, palm: int) -> bool:
        """Return whether all joints of the chains below a palm are hinges or slides, as in robots."""
        return all(self.axis(row) is not None for chain in self.below(palm) for row in chain.rows)

    def whole(self, rows: Sequence[int], palm: int, all_rows: Iterable[Sequence[int]]) -> list[int]:
        """Return the rows of all joints of a finger, given some named ones: also hinges between palm and tip.

        Args:
            rows: Rows of the named joints, from base to tip.
            palm: Row of the palm.
            all_rows: Rows of the named joints of each finger; joints above all fingers belong to none of them.
        """
        if any(self.axis(row) is None for row in rows if self.moves[row]):
            return list(rows)
        parents = self.skeleton.parents
        lines = [ancestors(parents, other[0])[1:] for other in all_rows]
        shared = {row for row in lines[0] if all(row in line for line in lines)}
        last = rows[-1]
        while len(inner := self.branches(last)) == 1:
            last = inner[0]
        line = ancestors(parents, last)[::-1]
        inside = line[line.index(palm) + 1 :] if palm in line else line
        found = [row for row in inside if row not in shared and self.moves[row] and self.axis(row) is not None]
        return found or list(rows)

    def _ends_at(self, row: int, palm: int) -> bool:
        """Return whether a chain below the palm ends at a row."""
        last = self.moves[row] and not self.branches(row)
        return last and palm in ancestors(self.skeleton.parents, row)

    def chain(self, last: int, palm: int) -> Chain:
        """Return the chain whose last moving joint is ``last``."""
        line = ancestors(self.skeleton.parents, last)
        rows = tuple(row for row in line[: line.index(palm)][::-1] if self.moves[row])
        return self.of_rows(rows)

    def of_rows(self, rows: Sequence[int]) -> Chain:
        """Return the chain that consists of given joints, from base to tip."""
        places = self.frames[:, :3, 3]
        tip, offset, estimated = self._tip(rows)
        end = places[tip] + self.frames[tip, :3, :3] @ offset
        return Chain(tuple(rows), tip, offset, estimated, places[rows[0]], end)

    def _tip(self, rows: Sequence[int]) -> tuple[int, Array, bool]:
        """Return the row that carries the tip, the tip in the frame of this row, and whether the tip is an estimate."""
        last, places = rows[-1], self.frames[:, :3, 3]
        below, open_rows = list[int](), [last]
        while open_rows:
            row = open_rows.pop()
            inner = [child for child in self.skeleton.children[row] if not self.moves[child]]
            below += inner
            open_rows += inner
        far = [magnitude(places[row] - places[last]) for row in below]
        marked = [k for k, row in enumerate(below) if _is_tip(self.skeleton.joints[row].name)]
        if marked or (far and max(far) > 0.0):
            best = max(marked or range(len(below)), key=lambda k: far[k])
            if far[best] > 0.0:
                return below[best], np.zeros(3), False
        own = [site for site in self.skeleton.joints[last].sites if _is_tip(site.name)]
        if own:
            place = max((np.asarray(site.rest)[:3, 3] for site in own), key=magnitude)
            return last, np.array(place, float), False
        return last, self._beyond(rows), True

    def _beyond(self, rows: Sequence[int]) -> Array:
        """Return an estimate of the tip in the last joint's frame, (3,), that continues the segment before it."""
        places = self.frames[:, :3, 3]
        before = [row for row in rows[:-1] if magnitude(places[rows[-1]] - places[row]) > 0.0]
        parent = before[-1] if before else self.skeleton.parents[rows[-1]]
        if parent < 0:
            return np.zeros(3)
        way = places[rows[-1]] - places[parent]
        return _LAST * self.frames[rows[-1], :3, :3].T @ way

    def axis(self, row: int) -> Array | None:
        """Return the axis of a hinge or slide at rest in the world, (3,); None for other joints."""
        return self._axes[row]

    def _axis(self, row: int) -> Array | None:
        """Return the result of ``axis``, without its cache."""
        joint = self.skeleton.joints[row]
        return self.frames[row, :3, :3] @ joint.axis if joint.kind in (Kind.HINGE, Kind.SLIDE) else None

    def without_linkages(self, chains: list[Chain]) -> tuple[list[Chain], list[Chain]]:
        """Return the chains that may be fingers, and the other ones: bars of linkages, and motors that drive fingers.

        A gripper may have a bar next to each finger: a chain that begins near a longer one and has parallel axes, or
        that a loop connects to a longer one. Some hands have a joint for a motor, which moves no finger directly.
        """
        others = [k for k, chain in enumerate(chains) if not self._is_drive(chain, chains)]
        kept = [
            k for k in others
            if not any(
                self._is_bar(chains[k], chains[j], chains) or self._is_tied(chains[k], chains[j])
                for j in others if j != k
            )
        ]  # fmt: skip
        if len(kept) < 2:
            return chains, []
        return [chains[k] for k in kept], [chain for k, chain in enumerate(chains) if k not in kept]

    def _is_drive(self, chain: Chain, chains: Sequence[Chain]) -> bool:
        """Return whether a chain of one joint is a motor: it leads joints of other chains, or follows them.

        A motor has no tip frame, and at least two other chains have more joints. A chain without length counts as a
        motor too.
        """
        longer = [other for other in chains if len(other.rows) > len(chain.rows)]
        if len(chain.rows) > 1 or not chain.estimated or len(longer) < 2:
            return False
        row, leaders = max(chain.rows), self.skeleton.leader_rows
        if not magnitude(chain.end - chain.base) > 0.0:
            return True
        if any(leaders.get(other) == row for finger in longer for other in finger.rows):
            return True
        axes = [self.axis(row), *(self.axis(finger.rows[-1]) for finger in longer)]
        return row in leaders and _are_parallel(axes)

    def _is_tied(self, chain: Chain, other: Chain) -> bool:
        """Return whether a loop connects a chain to another chain that reaches farther."""
        places = self.frames[:, :3, 3]
        far = [magnitude(one.end - places[self.skeleton.parents[one.rows[0]]]) for one in (chain, other)]
        if far[0] >= far[1]:
            return False
        for tie in self.skeleton.loops:
            if isinstance(tie, Loop) and tie.second is not None:
                rows = {self._carrier(frame) for frame in (tie.first, tie.second)}
                if rows & set(chain.rows) and rows & set(other.rows):
                    return True
        return False

    def _carrier(self, frame: str) -> int:
        """Return the row of the moving joint that carries a frame; the root's row if no joint moves the frame."""
        line = ancestors(self.skeleton.parents, self.skeleton.locate(frame)[0])
        return next((row for row in line if self.moves[row]), line[-1])

    def _is_bar(self, chain: Chain, other: Chain, chains: Sequence[Chain]) -> bool:
        """Return whether a chain is the bar of a linkage next to another chain."""
        if len(chain.rows) >= len(other.rows):
            return False
        spread = max(magnitude(a.base - other.base) for a in chains)
        near = magnitude(chain.base - other.base) <= _NEAR * spread
        return near and _are_parallel([self.axis(row) for row in (*chain.rows, *other.rows)])


def _are_parallel(axes: list[Array | None]) -> bool:
    """Return whether no axis is None, and all axes are parallel."""
    known = [axis for axis in axes if axis is not None]
    return len(known) == len(axes) and all(abs(float(known[0] @ axis)) > _PARALLEL for axis in known)


def _is_tip(name: str) -> bool:
    """Return whether a name is that of a fingertip."""
    words = words_of(name)
    return bool(words & {"tip", "end", "nub", "site"}) or any(word.endswith("tip") for word in words)
