"""Learned starts: poses near many targets of one problem, stored in their own file.

``synovia.learning`` computes them. A solve without a start begins at the poses that the starts propose for its
targets, and then proceeds as usual. ``kernels.proposals`` describes the lookup.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FormatError, InputError, UnsupportedError
from synovia.goals import Goal, PoseGoal, PositionGoal, RotationGoal
from synovia.goals.base import POSITION, ROTATION
from synovia.io.base import as_path, write_bytes
from synovia.io.npz import read_arrays, texts_of
from synovia.kernels import layout
from synovia.model import Skeleton
from synovia.model.geometry import Array
from synovia.model.tables import Ints
from synovia.problem import Reduced
from synovia.text import listed

SCHEMA: Final = "synovia.starts/2"
MOST_GOALS: Final = 4
SLOPE: Final = np.float16  # type of derivatives; precise enough, as targets in one leaf of the tree are close
_AGAIN: Final = "learn them again: sy.learn_starts(skeleton, goals)"
_SAME: Final = 1e-6  # length scales or radians: a problem that differs from the learned one by less counts as equal
_PARTS: Final = {POSITION: "position", ROTATION: "rotation", POSITION | ROTATION: "pose"}
_KIND: Final = "starts that sy.learn_starts saved"
_NAMES: Final = ("key", "skeleton", "joints", "owners", "goals")
_TABLES: Final = ("links", "fixed", "couple", "variables", "limits", "ends", "frames")
_TREE: Final = ("features", "borders", "counts", "rows", "slopes")
_TYPES: Final = {
    **dict.fromkeys(("links", "variables", "ends"), np.dtype(np.int32)),
    **dict.fromkeys(("fixed", "couple", "limits", "frames", "reach"), np.dtype(np.float64)),
    **dict.fromkeys(("borders", "rows"), np.dtype(np.float32)),
    "slopes": np.dtype(SLOPE),
    **dict.fromkeys(("features", "counts"), np.dtype(np.uint8)),
}
# number of dimensions of each array; 2 for arrays that are not listed
_DIMENSIONS: Final = {"reach": 0, "features": 1, "borders": 1, "counts": 1}


@dataclass(frozen=True, slots=True, eq=False)
class Learnable:
    """The parts of a problem that its starts depend on: the goals, the joints that move them, and joint limits.

    Args:
        skeleton: Name of the body.
        joints: Name of the joint of each row of ``links``.
        owners: Name of the joint of each row of ``variables``.
        goals: Each goal in words, such as "pose of tool".
        links: (n, 6) integers of each row, as in ``Reduced``.
        fixed: (n, 12) fixed transforms.
        couple: (n, 2) couplings.
        variables: (k, 3) joint variables.
        limits: (k, 11) limits of each variable.
        ends: (g, 2) parts and row of each goal.
        frames: (g, 12) frame of each goal on its row.
        reach: Length scale, length units.
    """

    skeleton: str
    joints: tuple[str, ...]
    owners: tuple[str, ...]
    goals: tuple[str, ...]
    links: Ints
    fixed: Array
    couple: Array
    variables: Ints
    limits: Array
    ends: Ints
    frames: Array
    reach: float

    @classmethod
    def of(cls, skeleton: Skeleton, goals: Sequence[Goal], reduced: Reduced) -> Learnable:
        """Return the parts of a problem that its starts depend on.

        Raises:
            UnsupportedError: If starts cannot be learned for such goals.
        """
        if reduced.loops is not None:
            raise UnsupportedError("no starts can be learned for a body with loops", where=skeleton.name)
        for goal in goals:
            if type(goal) not in (PositionGoal, RotationGoal, PoseGoal) or goal.terms:
                raise UnsupportedError(
                    "no starts can be learned for this goal",
                    where=f"goal {goal.label!r}",
                    value=goal if goal.terms else type(goal).__name__,
                    expected="PositionGoal, RotationGoal or PoseGoal, without bounds",
                )
        if len(goals) > MOST_GOALS:
            raise UnsupportedError(
                "no starts can be learned for so many goals", value=len(goals), expected=f"at most {MOST_GOALS}"
            )
        names = skeleton.joint_names
        table = reduced.goals.table
        return cls(
            skeleton.name,
            _named(names, reduced.joints),
            _named(names, reduced.owner),
            tuple(f"{_PARTS[goal.constrained_parts]} of {goal.joint}" for goal in goals),
            reduced.rows, reduced.fixed, reduced.couple, reduced.variables, reduced.limits,
            np.ascontiguousarray(table[:, [layout.PARTS, layout.GOAL_ROW]]), reduced.goals.offsets, reduced.reach,
        )  # fmt: skip

    @property
    def form(self) -> int:
        """Bits FREE_TURN and FREE_TWIST for the joints of an arm that are computed from the target."""
        chain = self.links[:, layout.PARENT].tolist() == list(range(-1, len(self.links) - 1))
        plain = len(self.variables) == len(self.links) and bool((self.couple == (1.0, 0.0)).all())
        parts, last = self.ends[0].tolist()
        kinds = self.links[:, layout.KIND].tolist()
        arm = chain and plain and len(self.ends) == 1 and last == len(self.links) - 1 and len(self.links) > 2
        if not arm or not parts & POSITION or kinds[0] != layout.HINGE:
            return 0
        twists = parts & ROTATION and kinds[-1] == layout.HINGE
        return layout.FREE_TURN | (layout.FREE_TWIST if twists else 0)

    @property
    def features(self) -> int:
        """Number of features of a target."""
        places = 2 if self.form & layout.FREE_TURN else 3
        turns = 3 if self.form & layout.FREE_TWIST else 6
        return sum(places * bool(parts & POSITION) + turns * bool(parts & ROTATION) for parts, _ in self.ends.tolist())

    @property
    def slopes(self) -> int:
        """Number of slopes (derivatives) of a proposal: features times joints for an arm, 0 for other bodies."""
        return len(self.variables) * self.features if self.form & layout.FREE_TURN else 0

    @property
    def width(self) -> int:
        """Number of values of a proposal without its slopes."""
        blocks: list[int] = self.variables[:, layout.BLOCK].tolist()
        return layout.PROPOSED_Q + sum(1 if one == layout.SCALAR else 4 for one in blocks)

    @property
    def key(self) -> str:
        """Short hash of everything except the skeleton's name; equal on all machines."""
        digest = sha256(repr((self.joints, self.goals)).encode())
        for table in (self.links, self.variables, self.ends):
            digest.update(table.astype("<i4").tobytes())
        for table in (self.fixed, self.couple, self.limits, self.frames):
            digest.update((np.round(table, 6) + 0.0).astype("<f8").tobytes())  # + 0.0 turns negative zeros into zeros
        return digest.hexdigest()[:16]

    def require(self, other: Learnable) -> None:
        """Check that another problem has the same parts as this one.

        Raises:
            InputError: If the problems differ; the message names the first joint or goal that differs.
        """

        def differs(what: str, mine: Any, theirs: Any) -> NoReturn:
            raise InputError(
                f"starts of {self.skeleton!r} do not fit {other.skeleton!r}: {what}",
                value=theirs, expected=str(mine), hint=_AGAIN,
            )  # fmt: skip

        if self.goals != other.goals:
            differs("goals differ", repr("; ".join(self.goals)), "; ".join(other.goals))
        for mine, theirs in ((self.owners, other.owners), (self.joints, other.joints)):
            if mine != theirs:
                more, fewer = _beyond(theirs, mine), _beyond(mine, theirs)
                said = [f"{listed(more)} moves too"] * bool(more) + [f"{listed(fewer)} does not move"] * bool(fewer)
                differs(", ".join(said) or "the order of joints differs", f"{len(set(mine))} joints", len(set(theirs)))
        for mine, theirs in ((self.links, other.links), (self.variables, other.variables), (self.ends, other.ends)):
            if mine.shape != theirs.shape or (mine != theirs).any():
                differs("the order or kind of joints differs", listed(self.joints), listed(other.joints))
        for names, what, mine, theirs, unit in (
            (self.joints, "place", self.fixed, other.fixed, self.reach),
            (self.joints, "coupling", self.couple, other.couple, 1.0),
            (self.owners, "limits", self.limits, other.limits, 1.0),
            (self.goals, "place", self.frames, other.frames, self.reach),
        ):
            same = np.isclose(mine, theirs, rtol=_SAME, atol=_SAME * unit).all(axis=1)
            if not same.all():
                k = int(np.argmin(same))
                at = int(np.argmin(np.isclose(mine[k], theirs[k], rtol=_SAME, atol=_SAME * unit)))
                differs(f"{what} of {names[k]!r}", f"{mine[k, at]:.6g}", float(theirs[k, at]))


def _beyond(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the names that are not in the second sequence, each once."""
    return [name for name in dict.fromkeys(names) if name not in others]


def _named(names: Sequence[str], rows: Ints) -> tuple[str, ...]:
    """Return the names with these indices."""
    chosen: list[int] = rows.tolist()
    return tuple(names[row] for row in chosen)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LearnedStarts:
    """Poses near the targets of one problem, in a tree that looks up the poses near a given target.

    ``sy.learn_starts`` computes them and ``sy.formats.load_starts`` reads them. They fit one skeleton with one set of
    goals; other problems are refused. ``sy.IK(skeleton, goals, starts=starts)`` uses them.

    Args:
        problem: The parts of the problem on which the starts depend.
        features: (leaves,) index of the feature by which each node of the tree divides the targets.
        borders: (leaves,) threshold of each split.
        counts: (leaves,) number of proposals of each leaf.
        rows: (proposals, values) the proposals of all leaves; ``kernels.layout`` names the columns.
        slopes: (proposals, joints * features) derivatives of each joint of an arm by the features of the target;
            (proposals, 0) for other bodies.

    Example:
        >>> import synovia as sy
        >>> starts = sy.learn_starts(sy.bundled("arm7"), sy.PositionGoal("tool"), samples=256)
        >>> starts.leaves, starts.poses <= 8 * 8
        (8, True)
    """

    problem: Learnable
    features: NDArray[np.uint8]
    borders: NDArray[np.float32]
    counts: NDArray[np.uint8]
    rows: NDArray[np.float32]
    slopes: NDArray[np.float16]

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.features, self.borders, self.counts, self.rows, self.slopes):
            array.setflags(write=False)

    @property
    def key(self) -> str:
        """Hash of the joints and goals. A problem can use the starts if its hash is equal."""
        return self.problem.key

    @property
    def leaves(self) -> int:
        """Number of regions into which the tree divides the targets."""
        return len(self.borders)

    @property
    def poses(self) -> int:
        """Number of poses."""
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Size of all arrays, bytes."""
        return sum(array.nbytes for array in (self.features, self.borders, self.counts, self.rows, self.slopes))

    def __repr__(self) -> str:
        """Return the skeleton, the goals, and the numbers of poses and regions."""
        goals = listed(self.problem.goals)
        return f"{type(self).__name__}({self.problem.skeleton!r}, {goals}: {self.poses} poses in {self.leaves} regions)"

    def numbers(self) -> dict[int, int]:
        """Return the integers that these starts set in the head of a packed problem."""
        return {
            layout.N_LEAVES: self.leaves,
            layout.N_PROPOSALS: len(self.rows),
            layout.N_PROPOSAL: self.rows.shape[1] + self.slopes.shape[1],
            layout.PROPOSAL_FORM: self.problem.form,
            layout.PROPOSED_FIRST: 1,
        }

    def tables(self) -> dict[str, NDArray[Any]]:
        """Return the tables that these starts add to a packed problem."""
        return {
            "learned.nodes": np.stack(
                [self.features, np.cumsum(self.counts, dtype=np.int32) - self.counts], axis=1
            ).astype(np.int32),
            "learned.borders": self.borders.astype(np.float64),
            "learned.rows": self._arms() if self.slopes.size else self._poses(),
        }

    def _arms(self) -> NDArray[np.float64]:
        """Return the proposals of an arm with their slopes. The kernel computes poses within the limits from them."""
        return np.concatenate([self.rows, self.slopes], axis=1, dtype=np.float64)

    def _poses(self) -> NDArray[np.float64]:
        """Return the proposals with their poses clamped to the limits, because stored poses are rounded."""
        rows, at = self.rows.astype(np.float64), layout.PROPOSED_Q
        for block, limits in zip(self.problem.variables[:, layout.BLOCK].tolist(), self.problem.limits, strict=True):
            if block == layout.SCALAR:
                np.clip(rows[:, at], limits[layout.LOWER], limits[layout.UPPER], out=rows[:, at])
                at += 1
                continue
            quats = rows[:, at : at + 4]
            size = np.linalg.norm(quats, axis=1, keepdims=True)
            quats /= np.where(size > 0.0, size, 1.0)
            at += 4
        return rows

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the starts as a NumPy archive, without pickle. Equal starts give identical bytes.

        Args:
            path: The file, ``.npz``.
            force: Whether an existing file may be replaced.

        Raises:
            FileError: If the file exists and ``force`` is not set, or it cannot be written.
            FormatError: If the file name has another suffix.
        """
        where = as_path(path)
        if where.suffix.lower() != ".npz":
            raise FormatError("starts are saved as .npz", where=str(where), value=where.suffix, expected=".npz")
        one = self.problem
        content: dict[str, Any] = {
            "schema": np.array(SCHEMA),
            "key": np.array(one.key),
            "skeleton": np.array(one.skeleton),
            "joints": np.array(one.joints),
            "owners": np.array(one.owners),
            "goals": np.array(one.goals),
            **{name: getattr(one, name) for name in _TABLES},
            "reach": np.array(one.reach),
            **{name: getattr(self, name) for name in _TREE},
        }
        data = io.BytesIO()
        np.savez(data, **content)
        write_bytes(where, data.getvalue(), force=force)


def load_starts(path: str | os.PathLike[str]) -> LearnedStarts:
    """Read starts that ``sy.learn_starts`` computed.

    Args:
        path: The file, ``.npz``.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is damaged, or of another kind.

    Example:
        >>> import synovia as sy
        >>> starts = sy.formats.load_starts("arm.npz")  # doctest: +SKIP
        >>> ik = sy.IK(sy.load_skeleton("arm.urdf"), sy.PoseGoal("tool"), starts=starts)  # doctest: +SKIP
    """
    where = as_path(path)
    found = read_arrays(where, ("schema", *_NAMES, *_TABLES, "reach", *_TREE), _KIND)
    schema = texts_of(found["schema"]) if "schema" in found else None
    missing = [name for name in (*_NAMES, *_TABLES, "reach", *_TREE) if name not in found]
    if schema != [SCHEMA] or missing:
        raise FormatError(
            "archive has no learned starts of this version",
            where=str(where), value=schema, expected=f"schema {SCHEMA!r}", hint=_AGAIN,
        )  # fmt: skip

    def damaged(what: str, value: object, expected: str) -> NoReturn:
        raise FormatError(
            f"learned starts are damaged: {what}", where=str(where), value=value, expected=expected, hint=_AGAIN
        )

    texts = {name: texts_of(found[name]) for name in _NAMES}
    names: dict[str, list[str]] = {}
    for name, lines in texts.items():
        if lines is None:
            damaged(f"array {name!r}", found[name].dtype.name, "texts")
        names[name] = lines
    for name in (*_TABLES, "reach", *_TREE):
        if found[name].dtype != _TYPES[name] or found[name].ndim != _DIMENSIONS.get(name, 2):
            damaged(f"array {name!r}", f"{found[name].dtype.name} {found[name].shape}", f"{_TYPES[name]}")
    counts = {
        "links": (len(names["joints"]), layout.ROW_WIDTH),
        "fixed": (len(names["joints"]), layout.FRAME_WIDTH),
        "couple": (len(names["joints"]), layout.COUPLING_WIDTH),
        "variables": (len(names["owners"]), layout.VARIABLE_WIDTH),
        "limits": (len(names["owners"]), layout.LIMIT_WIDTH),
        "ends": (len(names["goals"]), 2),
        "frames": (len(names["goals"]), layout.FRAME_WIDTH),
    }
    for name, shape in counts.items():
        if found[name].shape != shape or not len(found[name]):
            damaged(f"array {name!r}", found[name].shape, f"{shape}")
    for name in ("fixed", "couple", "frames", "reach"):
        if not np.isfinite(found[name]).all():
            damaged(f"array {name!r}", "nan or inf", "finite numbers")
    if np.isnan(found["limits"]).any():
        damaged("array 'limits'", "nan", "numbers")
    problem = Learnable(
        names["skeleton"][0], tuple(names["joints"]), tuple(names["owners"]), tuple(names["goals"]),
        **{name: found[name] for name in _TABLES}, reach=float(found["reach"]),
    )  # fmt: skip
    features, borders, tally, rows, slopes = (found[name] for name in _TREE)
    leaves = len(borders)
    if leaves == 0 or leaves & (leaves - 1) or features.shape != (leaves,) or tally.shape != (leaves,):
        damaged("the tree", (features.shape, borders.shape, tally.shape), "one length, a power of two")
    if int(tally.sum()) != len(rows):
        damaged("the poses", len(rows), f"{int(tally.sum())}")
    if rows.shape[1] != problem.width:
        damaged("the poses", rows.shape[1], f"{problem.width} numbers each")
    if slopes.shape != (len(rows), problem.slopes):
        damaged("the slopes", slopes.shape, f"{(len(rows), problem.slopes)}")
    if features.max(initial=0) >= min(problem.features, layout.MOST_FEATURES):
        damaged("a feature", int(features.max()), f"below {problem.features}")
    if not all(np.isfinite(array).all() for array in (rows, borders, slopes)):
        damaged("a number", "nan or inf", "finite numbers")
    if names["key"] != [problem.key]:
        damaged("the key", names["key"][0], problem.key)
    return LearnedStarts(problem, features, borders, tally, rows, slopes)
