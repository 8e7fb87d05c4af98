"""Common parts of solvers: a solver is a frozen set of settings that names an algorithm and selects its kernel."""

from __future__ import annotations

import dataclasses
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from synovia.arguments import ChecksArguments
from synovia.errors import InputError, UnsupportedError
from synovia.goals import Goal, kinds
from synovia.kernels.layout import GOAL_ROW, KIND, PROGRESS, VARIABLE
from synovia.model import Kind, Skeleton
from synovia.model.geometry import Array
from synovia.problem import Reduced, hold_all_but
from synovia.problem.structure import named, own_variables

Kernel = Callable[..., int]
# Abilities of solvers. ``Goal.needs`` names the ability that a kind of goal requires
POSE_GOALS: Final = frozenset({"position", "rotation", "pose"})
# "limb": a goal that rotates a limb; "rows": any residual with a kernel
KERNEL_GOALS: Final = POSE_GOALS | {"aim", "limb", "rows"}
ALL_GOALS: Final = KERNEL_GOALS | {"rest", "custom"}
LARGEST: Final = sys.float_info.max
_MOST_WORK: Final = 1e7  # in the unit of work of the kernels; takes about half a second


class Search(NamedTuple):
    """Limits of the search for a solution. The defaults suit closed forms."""

    max_steps: int = 1  # largest number of steps of one attempt
    attempts: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver(ChecksArguments, ABC):
    """Settings of one algorithm. Immutable.

    Raises:
        InputError: If a setting is out of range.

    Example:
        >>> import synovia as sy
        >>> isinstance(sy.Fabrik(), sy.Solver), sy.Fabrik().name
        (True, 'fabrik')
    """

    name: ClassVar[str]
    finish: ClassVar[str | None] = None  # method that polishes the best pose of a miss; see ``Heuristic``
    # the method ``finish`` for poses that follow another pose, as in a track
    follow_finish: ClassVar[str | None] = None
    closed: ClassVar[bool] = False  # whether formulas compute the solution in one step
    # whether priorities are strict; the miss then has reasons (``diagnosis.reasons``)
    supports_priorities: ClassVar[bool] = False
    supported_goals: ClassVar[frozenset[str]] = POSE_GOALS
    others: ClassVar[frozenset[str]] = frozenset()  # settings that are not numbers, which the subclass checks
    # (steps, share): an attempt ends if this number of steps does not lower the squared error to this share.
    progress: ClassVar[tuple[int, float]] = (4, 0.25)

    def __post_init__(self) -> None:
        """Check numeric settings; convert NumPy scalars to Python numbers, so that they print and hash alike."""
        for setting in fields(self):
            value: Any = getattr(self, setting.name)
            if setting.name in self.others or (value is None and setting.name in _OPTIONAL):
                continue
            if isinstance(value, np.integer | np.floating):
                value = value.item()
                object.__setattr__(self, setting.name, value)
            low, high, whole = _RANGES.get(setting.name, (0.0, LARGEST, False))
            types = int if whole else int | float
            if isinstance(value, bool) or not isinstance(value, types) or not low <= value <= high:
                kind = "a whole number" if whole else "a finite number"
                raise out_of_range(self, setting.name, f"{kind} from {low:g}" + f" to {high:g}" * (high < LARGEST))

    @property
    def search(self) -> Search:
        """Limits of the steps and attempts of a solve, and its seed."""
        return Search()

    @property
    def most_work(self) -> float:
        """Work limit of one solve (see ``kernels.compiler.watch``), and separately of polishing its miss.

        The limit applies to bodies of up to a hundred joints, and grows in proportion for larger bodies.
        """
        return _MOST_WORK

    @property
    def pole_pace(self) -> str | None:
        """Largest rotation of a limb's plane towards its pole in a track, in words; None without a bound."""
        return None

    @property
    def bounds_motion(self) -> bool:
        """Whether the motion of one solve is bounded, so that another solve from its end can continue."""
        return False

    def largest_moves(self, skeleton: Skeleton, reach: float) -> Array | None:
        """Return the largest move of each variable of a skeleton in one solve; None without bounds.

        Args:
            skeleton: The solved skeleton.
            reach: Length scale of the problem, length units.

        Returns:
            (k,) in the order of the skeleton's variables, radians or length units; infinite for no bound.
        """
        return None

    @property
    def polishes(self) -> bool:
        """Whether Newton's method polishes a miss to a minimum within the limits."""
        return False

    def reasons(self, missed: Sequence[Goal]) -> Sequence[str]:
        """Return sentences about settings that keep the pose from meeting these goals."""
        return ()

    def for_diagnosis(self) -> Solver:
        """Return settings for the diagnosis of a miss: one attempt, without bounds on motion."""
        return self.without_restarts()

    def without_restarts(self) -> Self:
        """Return the same settings with a single attempt."""
        return self

    def in_levels(self, goals: Sequence[Goal], tied: bool = False) -> Mapping[str, Any] | None:
        """Return settings of full-body that replace these settings for some goals; None to keep these settings.

        Args:
            goals: The goals.
            tied: Whether the joints open or close loops.

        Raises:
            UnsupportedError: If ``tied`` is set, but this algorithm does not keep loops closed.
        """
        if tied:
            raise self.opens_loops()
        return None

    def opens_loops(self) -> UnsupportedError:
        """Return the error for problems with loops, which this algorithm does not close."""
        return UnsupportedError(
            f"{self.name} does not keep loops closed",
            expected="joints that are in no loop",
            hint="use the solver 'full-body', 'lm', 'dls' or 'pinv'; skeleton.with_loops([]) leaves the loops out",
        )

    def resolved(self, goal: Goal, skeleton: Skeleton) -> Goal:
        """Return a goal completed by values that depend on the skeleton, as this algorithm solves it.

        Raises:
            InputError: If the skeleton lacks what the goal needs, or the settings contradict it.
        """
        return goal.resolved(skeleton)

    def restrict(
        self, reduced: Reduced, skeleton: Skeleton, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]]
    ) -> Reduced:
        """Return the part of a problem that this algorithm moves: all of it, unless the algorithm is for few joints.

        Args:
            reduced: The part of the skeleton that the goals need.
            skeleton: The whole skeleton.
            goals: The goals.
            goal_joints: Joints of each goal, rows of the skeleton.

        Raises:
            UnsupportedError: If the algorithm cannot solve for these joints.
        """
        return reduced

    @abstractmethod
    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the compiled entry point for a problem. It is imported here, so that no other kernel is compiled."""

    def branch_kernel(self, reduced: Reduced) -> Kernel:
        """Return the compiled entry point that lists every branch of a problem if its ``first`` is LIST.

        Raises:
            UnsupportedError: If the algorithm finds only one pose.
        """
        raise UnsupportedError(
            f"{self.name} finds one pose and lists no branches",
            hint="a closed form lists them, or one PoseGoal of six joints; lock others, or pass redundancy= for seven",
        )

    def proof_of_branches(self, reduced: Reduced) -> tuple[int | None, float]:
        """Return an index in the memory of ``extra_scratch``, and the value there if the last list is complete.

        The index is None if the algorithm never knows whether a list of branches is complete. Singular branches are not
        considered.
        """
        return None, 0.0

    def confirms_branches(self, memory: Array) -> bool:
        """Return whether the memory of ``extra_scratch`` confirms that the last list of branches is complete."""
        return True

    def simd_kernel(self, reduced: Reduced) -> Kernel | None:
        """Return the entry point that solves a SIMD batch of problems; None if there is no such kernel."""
        return None

    def simd_size(self, reduced: Reduced) -> int:
        """Return the number of values of the SIMD batch's own memory."""
        return 0

    def miss_kernel(self) -> Kernel:
        """Return the compiled entry point that polishes and classifies misses.

        It has the arguments of a solver's kernel, with the results as ``out`` and a negative ``first`` (see
        ``kernels.search.classify``). With ``warm`` it does not search for a better pose far from the start.
        """
        from synovia.kernels.search.classify import classify

        return classify

    def params(self) -> dict[int, float]:
        """Return the settings of this algorithm by their indices in ``kernels.layout``."""
        return {}

    def extra_scratch(self, residuals: int, columns: int) -> int:
        """Return the size of this algorithm's own scratch memory (``Work.solver_scratch``), in float64."""
        return 0

    def check(self, goals: Sequence[Goal]) -> None:
        """Check that this algorithm supports the goals.

        Raises:
            UnsupportedError: If a goal is not supported; the error names the goal, and a solver that supports it.
        """
        for goal in goals:
            if goal.needs not in self.supported_goals and type(goal).needs in self.supported_goals:
                raise UnsupportedError(
                    f"{self.name} does not support bounds= and cone=",
                    where=f"goal {goal.label!r}",
                    value=goal,
                    expected="the goal without them",
                    hint=_hint(goal),
                )
            if goal.needs not in self.supported_goals:
                supported = sorted(name for name, kind in kinds().items() if kind.needs in self.supported_goals)
                raise UnsupportedError(
                    f"{self.name} does not support this goal",
                    where=f"goal {goal.label!r}",
                    value=goal,
                    expected=f"goals of the kinds {', '.join(supported)}",
                    hint=_hint(goal),
                )
            if goal.rank > 0 and not self.supports_priorities:
                raise UnsupportedError(
                    f"{self.name} has no priorities",
                    where=f"goal {goal.label!r}",
                    value=goal.priority,
                    expected="priority 0",
                    hint="use the solver 'full-body', or weights",
                )

    def replace(self, **settings: Any) -> Self:
        """Return the same settings with some values replaced."""
        return dataclasses.replace(self, **settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedForm(Solver):
    """Settings of an algorithm that computes the solution in one step, for certain joint layouts."""

    closed: ClassVar[bool] = True

    def refusal(self, goal: Goal, found: str, expected: str, hint: str = "use the solver 'lm'") -> UnsupportedError:
        """Return the error for a goal whose joints this algorithm does not support."""
        return UnsupportedError(
            f"{self.name} does not support these joints",
            where=f"goal on {goal.joint!r}",
            value=found,
            expected=expected,
            hint=hint,
        )

    def refused_goals(self, goals: Sequence[Goal], takes: str, expected: str, hint: str) -> UnsupportedError:
        """Return the error for goals that this algorithm does not support together."""
        where = ", ".join(f"goal on {goal.joint!r}" for goal in goals)
        return UnsupportedError(
            f"{self.name} takes {takes}", where=where, value=list(goals), expected=expected, hint=hint
        )

    def check_poles(
        self, reduced: Reduced, skeleton: Skeleton, goals: Sequence[Goal], limbs: Mapping[int, int]
    ) -> None:
        """Check that each pole belongs to a moving limb, with one pole per limb.

        Args:
            reduced: The problem.
            skeleton: The skeleton.
            goals: The goals.
            limbs: Row of the root of each limb, by the row of its middle joint.

        Raises:
            UnsupportedError: If a pole is on another joint, about another root, or the second of its limb.
        """
        seen: set[int] = set()
        for g, root in reduced.limbs:
            row = int(reduced.goals.table[g, GOAL_ROW])
            found = "a second pole of its limb" if row in seen else ""
            if limbs.get(row) != root:
                found = "a pole with another root" if row in limbs else "a pole on another joint"
            if found:
                expected = f"a pole on {named(skeleton, reduced, [*limbs][::-1])}"
                hint = "the pole's joint is the elbow or knee, and its root the shoulder or hip"
                raise self.refusal(goals[g], found, expected, hint)
            seen.add(row)

    def in_levels(self, goals: Sequence[Goal], tied: bool = False) -> Mapping[str, Any] | None:
        """Return settings of full-body, for use if all branches violate a clearance goal; None without such goals."""
        if tied:
            raise self.opens_loops()
        return {"seed": self.search.seed} if keeps_clear(goals) else None

    def hold_others(self, reduced: Reduced, skeleton: Skeleton, goal: Goal, rows: Sequence[int]) -> Reduced:
        """Return the problem in which only the given rows move.

        Raises:
            UnsupportedError: If one of the rows is of a mimic joint or its leader.
        """
        if not own_variables(reduced, rows):
            raise self.refusal(goal, named(skeleton, reduced, rows), "joints that are not coupled as mimic joints")
        return hold_all_but(skeleton, reduced, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class IteratingSolver(Solver):
    """Settings of an algorithm that takes many steps and restarts from random poses.

    Args:
        max_steps: Largest number of steps (iterations, sweeps) of one attempt.
        attempts: Number of attempts: the first from the start pose, the others from random poses within the limits.
            After a miss, up to 25 more attempts search for a better pose, for a close miss of one goal up to 400; none
            with ``attempts=1``. With default (or lower) ``max_steps`` and ``attempts``, a solve on a large body or with
            clearance goals makes fewer attempts, so that it ends within a second.
        seed: Seed of the restarts; the same seed gives the same solution.
    """

    max_steps: int = 100
    attempts: int = 100
    seed: int = 0

    @property
    def search(self) -> Search:
        """Steps, attempts and seed of a solve."""
        return Search(self.max_steps, self.attempts, self.seed)

    @property
    def most_work(self) -> float:
        """Work limit of one solve; infinite if the user sets more steps or attempts than the defaults."""
        for setting in fields(self):
            default: Any = setting.default
            if setting.name in _STEPS and (getattr(self, setting.name) or 0) > (default or 0):
                return math.inf
        return _MOST_WORK

    def without_restarts(self) -> Self:
        """Return the same settings with one attempt."""
        return self.replace(attempts=1)

    def params(self) -> dict[int, float]:
        """Return the settings of this algorithm by their indices."""
        return {PROGRESS: self.progress[1]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heuristic(IteratingSolver):
    """Settings of FABRIK, CCD and particles, whose steps are small and cheap, so that an attempt may take many.

    Args:
        max_steps: Largest number of steps (iterations, sweeps) of one attempt.
        attempts: Number of attempts, restarts included.
        seed: Seed of the restarts.
        finish: With ``"lm"``, Newton's method (damped, as in Levenberg-Marquardt) polishes the best pose of a miss;
            ``solution.finish_steps`` counts its steps. With None, only in ``track`` and with ``follow=True`` does
            Newton's method polish misses, so that the tip slides with its target.
    """

    follow_finish: ClassVar[str | None] = "lm"  # otherwise the tip would fall behind its target and then jump
    progress: ClassVar[tuple[int, float]] = (20, 0.9)
    supported_goals: ClassVar[frozenset[str]] = POSE_GOALS | {"limb"}
    others: ClassVar[frozenset[str]] = frozenset({"finish"})

    max_steps: int = 500
    attempts: int = 50
    finish: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]  # a setting in this class

    def __post_init__(self) -> None:
        """Check the settings."""
        Solver.__post_init__(self)
        if self.finish is not None and not (isinstance(self.finish, str) and self.finish == "lm"):
            raise out_of_range(self, "finish", "None or 'lm'")

    @property
    def pole_pace(self) -> str | None:
        """Bound of a pole's rotation that ``kernels.goals.swivel`` sets, in words; None if another method polishes."""
        if self.polishes:
            return None
        from synovia.kernels.goals.swivel import RATE

        return f"{RATE:g} radians per limb length that the pole moves sideways"

    @property
    def polishes(self) -> bool:
        """Whether another method polishes a miss."""
        return self.finish is not None

    def check_limbs(self, reduced: Reduced) -> None:
        """Check that each limb with a pole has a moving ball joint at its root, unless another method polishes.

        Raises:
            UnsupportedError: If the joint at a limb's root is not a moving ball.
        """
        for g, root in () if self.polishes else reduced.limbs:
            if root < 0 or reduced.rows[root, KIND] not in (Kind.BALL, Kind.FREE) or reduced.rows[root, VARIABLE] < 0:
                raise UnsupportedError(
                    f"{self.name} turns a limb by the ball joint at its root, but that joint is not a moving ball",
                    where=f"goal {g}, a pole",
                    expected="root= a ball joint",
                    hint="use the solver 'lm', or finish='lm'",
                )


def keeps_clear(goals: Sequence[Goal]) -> bool:
    """Return whether there is a clearance goal among the goals."""
    return any(goal.needs == "clearance" for goal in goals)


def _hint(goal: Goal) -> str:
    """Return a hint that names a solver which supports a goal."""
    if goal.kind not in kinds():
        return "derive goals of your own from CustomGoal"
    if goal.needs == "clearance":
        return "use one of the solvers 'full-body', 'lm', 'dls', 'pinv'; of the closed forms 'segments' or 'hinges'"
    return "use the solver 'lm'"


def out_of_range(settings: object, name: str, expected: str) -> InputError:
    """Return the error for a setting with an unusable value."""
    return InputError(
        f"{name} is out of range", where=type(settings).__name__, value=getattr(settings, name), expected=expected
    )


_RANGES: dict[str, tuple[float, float, bool]] = {
    "max_steps": (1, 1_000_000, True),
    "attempts": (1, 1_000_000, True),
    "rounds": (1, 10_000, True),
    "seed": (0, 2**31 - 1, True),
    "largest_error": (1e-6, LARGEST, False),
    "largest_turn": (1e-6, LARGEST, False),
    "largest_step": (1e-6, LARGEST, False),
    "joints": (0, 2, True),
    "twist": (-LARGEST, LARGEST, False),
    "weight": (0, 1, False),
    "softening": (0.0, 0.5, False),
}
_STEPS = ("max_steps", "attempts", "rounds")
_OPTIONAL = frozenset({"largest_error", "largest_turn", "rounds"})
