"""The command ``learn``: what it learns by default, and what it refuses before the work."""

import pytest

import synovia as sy
from cli_runs import assert_refused, run
from synovia.comparison.problems import default_joints


def test_what_is_learned_is_checked_before_the_work(tmp_path):
    assert_refused(run("learn", "arm7", "-o", tmp_path / "arm.txt"), "expected .npz")
    assert_refused(run("learn", "arm7", "-o", tmp_path / "none" / "arm.npz"), "folder does not exist")
    five = [
        part for name in ("head", "left_hand", "right_hand", "left_foot", "right_foot") for part in ("--joint", name)
    ]
    ran = run("learn", "humanoid", "-o", tmp_path / "body.npz", *five)
    assert ran.code == 2
    assert "--joint" in ran.err
    assert "at most 4 joints" in ran.err


@pytest.mark.compiled
def test_of_many_limbs_four_are_learned(tmp_path):
    ran = run("learn", "humanoid", "-o", tmp_path / "body.npz", "--position", "--samples", 64, "--json")
    assert ran.code == 0
    assert "--joint chooses others" in ran.err
    parts = [f"{side}_{part}" for part in ("hand", "foot") for side in ("left", "right")]
    assert ran.data["goals"] == [f"position of {part}" for part in parts]
    for model in ("quadruped", "humanoid_hands"):
        assert len(default_joints(sy.bundled(model), 4)) == 4
