"""What every solver has in common: frozen settings that name an algorithm, and the kernel that carries it out."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

import numpy as np

from synovia.arguments import ChecksArguments
from synovia.errors import InputError, UnsupportedError
from synovia.goals import Goal, kinds
from synovia.kernels.layout import KIND, VARIABLE
from synovia.model import Kind, Skeleton
from synovia.problem import Reduced

Kernel = Callable[..., int]
# What a solver can honour; each kind of goal says which of these it needs (``Goal.needs``)
POSE_GOALS: Final = frozenset({"position", "rotation", "pose"})
KERNEL_GOALS: Final = POSE_GOALS | {"aim", "pole", "rows"}  # "rows": any residual with a kernel of its own
ALL_GOALS: Final = KERNEL_GOALS | {"rest", "custom"}
_ELSEWHERE: Final = "use the solver 'lm'"
LARGEST: Final = sys.float_info.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver(ChecksArguments, ABC):
    """Settings of one algorithm. Immutable.

    Args:
        max_steps: Steps (iterations, sweeps) of one attempt.
        attempts: Attempts: the first from the start pose, the others from random poses within the limits. A miss
            takes up to 25 of them more to look for a better pose; none with ``attempts=1``. With no more steps and
            attempts than the default ones, a solve on a large body makes fewer, so that it ends in a second.
        seed: Seed of the restarts; the same seed gives the same answer.

    Raises:
        InputError: If a setting is out of range.
    """

    name: ClassVar[str]
    finish: ClassVar[str | None] = None  # method that continues from the best pose of a miss; see ``Heuristic``
    closed: ClassVar[bool] = False  # whether formulas give the answer in one step
    supports_priorities: ClassVar[bool] = False  # strictly; a miss then gets reasons (``diagnosis.reasons``)
    supported_goals: ClassVar[frozenset[str]] = POSE_GOALS  # what the algorithm can meet
    others: ClassVar[frozenset[str]] = frozenset()  # settings that are not numbers; the subclass checks them itself
    # An attempt is given up when, in so many steps, the squared error has not fallen to this share.
    progress: ClassVar[tuple[int, float]] = (4, 0.25)
    default_work: ClassVar[float] = 1e7  # half a second

    max_steps: int = 100
    attempts: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.name in self.others or (value is None and setting.name in _OPTIONAL):
                continue
            if setting.name in _CHOICES:
                if value is not None and not (isinstance(value, str) and value in _CHOICES[setting.name]):
                    raise InputError(
                        f"{setting.name} is out of range",
                        where=type(self).__name__,
                        value=value,
                        expected=" or ".join(["None", *map(repr, _CHOICES[setting.name])]),
                    )
                continue
            if isinstance(value, np.integer | np.floating):
                value = value.item()
                object.__setattr__(self, setting.name, value)  # settings are plain numbers, so that they print and hash
            low, high, whole = _RANGES.get(setting.name, (0.0, LARGEST, False))
            kinds = int if whole else int | float
            if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
                kind = "a whole number" if whole else "a finite number"
                raise InputError(
                    f"{setting.name} is out of range",
                    where=type(self).__name__,
                    value=value,
                    expected=f"{kind} from {low:g}" + (f" to {high:g}" if high < LARGEST else ""),
                )

    @property
    def most_work(self) -> float:
        """How much work (see ``kernels.compiler.watch``) the attempts of one solve may be, and as much to settle it.

        That is for a body of up to a hundred joints; a larger one may take longer in proportion. There is no bound
        where more steps or attempts are asked for than the default ones.
        """
        for setting in fields(self):
            default: Any = setting.default
            if setting.name in _STEPS and (getattr(self, setting.name) or 0) > (default or 0):
                return math.inf
        return self.default_work

    @property
    def pole_pace(self) -> str | None:
        """By how much the plane of a limb turns towards its pole in a track, in words; None where nothing bounds it."""
        return None

    @property
    def polishes(self) -> bool:
        """Whether a miss is descended to a minimum by Newton's method within the limits."""
        return False

    def reasons(self) -> Sequence[str]:
        """Return sentences for the explanation of a miss: which settings may be what holds the pose back."""
        return ()

    def for_diagnosis(self) -> Solver:
        """Return the settings without what holds a pose back on purpose; a miss is explained with them."""
        return self

    def restrict(
        self, reduced: Reduced, skeleton: Skeleton, goals: Sequence[Goal], goal_joints: Sequence[Sequence[int]]
    ) -> Reduced:
        """Return the part of a problem that this algorithm moves: all of it, unless it is made for a few joints.

        Args:
            reduced: What the goals need.
            skeleton: The whole skeleton.
            goals: The goals.
            goal_joints: Joints of each goal, rows of the skeleton.

        Raises:
            UnsupportedError: If the joints are not such that the algorithm can solve for them.
        """
        del skeleton, goals, goal_joints
        return reduced

    def branch_kernel(self, reduced: Reduced) -> Kernel | None:
        """Return the compiled entry point that lists every branch, None if the algorithm finds one pose alone."""
        del reduced
        return None

    @abstractmethod
    def kernel(self, reduced: Reduced) -> Kernel:
        """Return the compiled entry point for a problem (imported here, so that only this one is compiled)."""

    def simd_kernel(self, reduced: Reduced) -> Kernel | None:
        """Return the entry point that solves many problems in lockstep, None where this algorithm has none."""
        del reduced
        return None

    def simd_size(self, reduced: Reduced) -> int:
        """Return how many numbers of memory of their own the lanes need."""
        del reduced
        return 0

    def miss_kernel(self, pose_only: bool) -> Kernel:
        """Return the compiled entry point that finishes misses: polishes them and finds their status.

        It has the arguments of a solver's kernel, with the answers as ``out`` and a negative ``first`` (see
        ``kernels.search.classify``); ``warm`` tells not to look for a better pose far from the start.
        """
        from synovia.kernels.search.classify import classify, classify_general

        return classify if pose_only else classify_general

    def params(self) -> dict[int, float]:
        """Return the settings that only this algorithm reads, by their places in ``kernels.layout``."""
        return {}

    def extra_scratch(self, residuals: int, columns: int) -> int:
        """Return how many numbers of scratch memory the kernel needs beyond what all solvers have (``Work.spare``)."""
        del residuals, columns
        return 0

    def check(self, goals: Sequence[Goal]) -> None:
        """Refuse goals that this algorithm cannot honour.

        Raises:
            UnsupportedError: Naming the goal, and a solver that can.
        """
        for goal in goals:
            if goal.needs not in self.supported_goals:
                supported = sorted(name for name, kind in kinds().items() if kind.needs in self.supported_goals)
                raise UnsupportedError(
                    f"{self.name} cannot honour this goal",
                    where=f"goal {goal.label!r}",
                    value=goal,
                    expected=f"goals of the kinds {', '.join(supported)}",
                    hint=_ELSEWHERE if goal.kind in kinds() else "derive goals of your own from CustomGoal",
                )
            if goal.priority != 0 and not self.supports_priorities:
                raise UnsupportedError(
                    f"{self.name} has no priorities",
                    where=f"goal {goal.label!r}",
                    value=goal.priority,
                    expected="priority 0",
                    hint="use the solver 'full-body', or weights",
                )

    def replace(self, **settings: Any) -> Solver:
        """Return the same settings with some changed."""
        import dataclasses

        return dataclasses.replace(self, **settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heuristic(Solver):
    """What FABRIK, CCD and particles share: their steps creep, so an attempt is judged after more of them.

    Args:
        max_steps: Steps (iterations, sweeps) of one attempt.
        attempts: Attempts, restarts included.
        seed: Seed of the restarts.
        finish: ``"lm"`` lets Newton's method (damped, as Levenberg-Marquardt) take over the best pose of a miss;
            ``solution.finish_steps`` tells how many steps were its. None: the method's own answer.
    """

    progress: ClassVar[tuple[int, float]] = (20, 0.9)

    max_steps: int = 500
    attempts: int = 50
    finish: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]  # here it is a setting

    @property
    def pole_pace(self) -> str | None:
        """What ``kernels.goals.swivel`` allows; nothing bounds another method that finishes."""
        if self.polishes:
            return None
        from synovia.kernels.goals.swivel import RATE

        return f"{RATE:g} radians for each length of the limb that the pole moves across its line"

    @property
    def polishes(self) -> bool:
        """Whether a miss is handed to another method."""
        return self.finish is not None

    def check_limbs(self, reduced: Reduced) -> None:
        """Refuse poles of limbs that nothing can turn at once, unless another method finishes.

        Raises:
            UnsupportedError: If the joint at a limb's root is no ball that moves.
        """
        for g, root in () if self.polishes else reduced.limbs:
            if root < 0 or reduced.rows[root, KIND] not in (Kind.BALL, Kind.FREE) or reduced.rows[root, VARIABLE] < 0:
                raise UnsupportedError(
                    f"{self.name} turns a limb by the ball joint at its root, and there is none that moves",
                    where=f"goal {g}, a pole",
                    expected="root= a ball joint",
                    hint="use the solver 'lm', or finish='lm'",
                )


_CHOICES: dict[str, tuple[str, ...]] = {"finish": ("lm",)}
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
