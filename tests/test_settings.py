"""Settings of solvers: what they refuse at the door, and that they are plain, frozen numbers behind it."""

import dataclasses

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError

NAMES = sorted(sy.solvers)


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


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_numpy_are_taken_as_plain_ones(name):
    for kind in (np.int64, np.uint8, np.int32):
        given = sy.solvers[name](max_steps=kind(7), attempts=kind(3), seed=kind(1))
        plain = sy.solvers[name](max_steps=7, attempts=3, seed=1)
        assert given == plain
        assert hash(given) == hash(plain)
        assert type(given.max_steps) is int
    with pytest.raises(InputError, match="whole number"):
        sy.solvers[name](max_steps=np.float64(7.0))


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_frozen_and_replaced(name):
    given = sy.solvers[name]()
    with pytest.raises(dataclasses.FrozenInstanceError):
        given.seed = 1
    assert given.replace(seed=5).seed == 5
    with pytest.raises(InputError, match="seed is out of range"):
        given.replace(seed=-1)
