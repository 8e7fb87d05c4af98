"""Results can be copied and pickled: a copy says what the result says, and does not change with its maker."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import synovia as sy
from synovia.retargeting.body import Body
from synovia.retargeting.feet import BENT, foot_problem

pytestmark = pytest.mark.compiled
SKIPPED = {"ik", "idle"}  # a problem is copied by its arguments


def results() -> dict[str, Any]:
    """Results of each kind."""
    arm, body, hands = (sy.bundled(name) for name in ("arm7", "humanoid", "humanoid_hands"))
    free = body.with_root("free")
    ik = sy.IK(arm, sy.PositionGoal("tool"))
    many = ik.solve_many([(0.4, 0.1, 0.5), (9.0, 0.0, 0.0), (np.nan, 0.0, 0.0)], on_error="skip")
    servo = sy.Servo(arm, sy.PositionGoal("tool"), rate=100, velocity=1.0, acceleration=10.0)
    servo.reset()
    live = sy.LiveRetarget(free, body, rate=30, learn=0)
    hand = sy.hands.LiveHand(hands, rate=30, side="right")
    marks = sy.hands.hand_landmarks(hands.rest_pose(), "right")
    clip = sy.Motion(free, [free.rest_q] * 12, 30.0, notes=("a note",))
    out = {
        "solution": ik.solve((0.4, 0.1, 0.5)),
        "miss": ik.solve((9.0, 0.0, 0.0)),
        "many": many,
        "skipped": many[2],
        "pose of a skipped one": many[2].pose,
        "track": ik.track(np.linspace((0.4, 0.1, 0.5), (0.3, 0.2, 0.5), 4)),
        "command": servo.step((0.4, 0.1, 0.5)),
        "command of a miss": [servo.step((9.0, 0.0, 0.0)) for _ in range(3)][-1],
        "live": live.step(free.rest_pose()),
        "live without a source": [live.step(None) for _ in range(20)][-1],
        "report": live.report(),
        "hand": hand.step(marks),
        "no hand": hand.step(None),
        "in place": clip.in_place(),
        "retargeted": sy.retarget(clip, body),
        "judged": sy.judge(clip),
        "hand of a clip": sy.retarget_hand(np.array([marks] * 3), hands, fps=30, side="right"),
        "found hand": sy.hand_of(hands, "right"),
        "shape fit": sy.shapes.ShapeFit(0.1, 0.2, 3, {"a": sy.shapes.LinkFit(1, 0.1, 0.2)}),
    }  # fmt: skip
    assert out["live without a source"].status is sy.Status.HOLDING
    return out


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return results()


def values(thing: Any) -> dict[str, Any]:
    """The public attributes of a result, without methods."""
    out: dict[str, Any] = {}
    for name in dir(thing):
        if not name.startswith("_") and name not in SKIPPED:
            try:
                value = getattr(thing, name)
            except sy.SynoviaError as error:
                value = str(error)
            if not callable(value):
                out[name] = value
    return out


def assert_same(one: Any, other: Any, where: str, depth: int = 0) -> None:
    """Compare two results by all that they say."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, err_msg=where)
    elif isinstance(one, tuple | list):
        assert len(one) == len(other), where
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{k}]", depth + 1)
    elif isinstance(one, int | float | str | None):
        assert one == other or one != one, where
    elif depth < 2 and type(one).__module__.startswith("synovia"):
        mine, its = values(one), values(other)
        assert mine.keys() == its.keys(), where
        for name in mine:
            assert_same(mine[name], its[name], f"{where}.{name}", depth + 1)


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_says_what_the_result_says(made: dict[str, Any], way: Callable[[Any], Any]) -> None:
    for name, thing in made.items():
        assert_same(thing, way(thing), name)
    live, hand = way(made["live"]), way(made["hand"])
    assert live.status is made["live"].status
    assert live.limited == made["live"].limited
    assert hand.status is made["hand"].status
    assert way(made["command of a miss"]).explain() == made["command of a miss"].explain()
    assert way(made["skipped"]).explain() == made["skipped"].explain()
    with pytest.raises(sy.InputError, match="row 2 of the batch is invalid"):
        way(made["pose of a skipped one"]).check_finite()


def test_what_a_problem_minds_is_not_changed_in_a_shared_one() -> None:
    target = Body.of(sy.bundled("humanoid").with_root("free"))
    ik = foot_problem(target, (target.roles["left_foot"],), (), ())
    assert foot_problem(target, (target.roles["left_foot"],), (), ()) is ik
    plain = sy.IK(target.skeleton, sy.PositionGoal("left_foot"), sy.FullBody())
    other = sy.IK.of(plain.problem.bending_from(BENT))
    assert plain.problem.bent is not other.problem.bent
    for way in (copy.copy, copy.deepcopy, pickled):
        np.testing.assert_array_equal(way(other).problem.bent, BENT)
        np.testing.assert_array_equal(way(ik).problem.bent, BENT)
        assert way(plain).problem.bent is plain.problem.bent
    np.testing.assert_array_equal(other.problem.with_solver(sy.FullBody(attempts=1)).bent, BENT)
