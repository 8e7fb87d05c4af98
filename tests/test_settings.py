"""Settings of solvers: what they refuse at the door, and that they are plain, frozen numbers behind it."""

import dataclasses
import inspect

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError, UnknownNameError

NAMES = sorted(sy.solvers)
ITERATING = [name for name in NAMES if not sy.solvers[name].closed]


def numbers(name):
    """Return the settings that are always numbers, and never negative."""
    given = sy.solvers[name]()
    settings = [f.name for f in dataclasses.fields(given) if type(getattr(given, f.name)) in (int, float)]
    return [
        setting for setting in settings if setting not in ("largest_error", "largest_turn", "twist")
    ]  # None: no clamp


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [float("inf"), float("nan"), -1, True, None, "many", 10**400, np.inf, np.bool_(True)])
def test_every_setting_is_a_finite_number(name, value):
    for setting in numbers(name):
        with pytest.raises(InputError, match=f"{setting} is out of range"):
            sy.solvers[name](**{setting: value})


@pytest.mark.parametrize("name", ITERATING)
def test_numbers_of_numpy_are_taken_as_plain_ones(name):
    for kind in (np.int64, np.uint8, np.int32):
        given = sy.solvers[name](max_steps=kind(7), attempts=kind(3), seed=kind(1))
        plain = sy.solvers[name](max_steps=7, attempts=3, seed=1)
        assert given == plain
        assert hash(given) == hash(plain)
        assert type(given.max_steps) is int
    with pytest.raises(InputError, match="whole number"):
        sy.solvers[name](max_steps=np.float64(7.0))


@pytest.mark.parametrize("name", ITERATING)
def test_settings_are_frozen_and_replaced(name):
    given = sy.solvers[name]()
    with pytest.raises(dataclasses.FrozenInstanceError):
        given.seed = 1
    assert given.replace(seed=5).seed == 5
    with pytest.raises(InputError, match="seed is out of range"):
        given.replace(seed=-1)


@pytest.mark.parametrize("name", ITERATING)
def test_a_misspelt_setting_is_told_the_nearest(name):
    """In the settings and in what changes them; what is left can be seen by editors."""
    kind = sy.solvers[name]
    for build in (lambda: kind(attemps=1), lambda: kind().replace(attemps=1)):
        with pytest.raises(
            UnknownNameError, match=f"{kind.__name__} has no argument 'attemps'. Did you mean 'attempts'"
        ):
            build()
    with pytest.raises(InputError, match="expected arguments by name"):
        kind(3)
    assert "attempts" in inspect.signature(kind).parameters


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(ITERATING)))
def test_closed_forms_have_no_settings_of_a_search(name):
    """One step gives the answer, so they refuse settings that could not change it."""
    kind = sy.solvers[name]
    for setting in {"max_steps", "attempts", "seed", "finish"} - ({"seed"} if name == "segments" else set()):
        assert setting not in inspect.signature(kind).parameters
        with pytest.raises(UnknownNameError, match=f"{kind.__name__} has no argument '{setting}'"):
            kind(**{setting: 1})
    assert kind().search[:2] == (1, 1)
    assert kind().without_restarts() == kind()


def test_the_seed_of_segments_reaches_its_kernel():
    from synovia.kernels.layout import SEED

    ik = sy.IK(sy.bundled("arm7"), sy.PoseGoal("tool"), sy.Segments(seed=7))
    assert ik.problem.ints[SEED] == 7


def test_settings_without_effect_are_refused():
    """The direction that rolls to ``up`` and the width of margins count only with ``up`` and with ``margins``."""
    with pytest.raises(InputError, match="Aim: top needs up: expected up= a direction, got"):
        sy.Aim(top=(0, 0, 1))
    with pytest.raises(InputError, match="NullSpace: margin needs margins: expected margins= a weight"):
        sy.NullSpace(center=1.0, margin=0.3)
    with pytest.raises(InputError, match="NullSpace: margin is out of range: expected a number above 0, at most 1"):
        sy.NullSpace(margins=1.0, margin=0.0)
    assert sy.Aim(up=(0, 1, 0), top=(0, 0, 1)).top == (0.0, 0.0, 1.0)
    assert sy.NullSpace(margins=1.0, margin=0.3).margin == 0.3
