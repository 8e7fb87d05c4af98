"""Locked joints, whose limits leave one value: what messages and reports say about them."""

from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from synovia.cli import main
from synovia.errors import InputError, UnknownNameError


@pytest.fixture
def arm():
    return sy.bundled("arm7").with_limits({"joint3": (0.3, 0.3), "joint5": (-0.2, -0.2)})


def test_a_miss_says_that_locked_joints_leave_too_few(arm):
    target = sy.Pose(arm, {"joint3": 0.3, "joint5": -0.2, "joint2": 0.4, "joint4": -1.5}).transform("tool")
    target[:3, :3] = target[:3, :3] @ sy.Rotation.from_euler("xyz", [0.4, 0.5, 0.6]).as_matrix()
    solution = sy.solve(arm, sy.PoseGoal("tool", target[:3, 3], target[:3, :3]))
    lines = solution.explain()
    assert not solution.reached
    assert "Locked by limits that leave one value: 'joint3', 'joint5'." in lines
    assert any(line.startswith("Only 5 joint values move 'tool'") for line in lines)
    assert not any("at a limit" in line.lower() and ("joint3" in line or "joint5" in line) for line in lines)


def test_one_number_is_no_limit_but_the_message_says_how_to_lock(arm):
    with pytest.raises(InputError, match=r"lock the joint there, write \(0\.25, 0\.25\)"):
        arm.with_limits({"joint2": 0.25})


def test_joints_are_locked_and_tools_added_in_a_toml_file(arm, tmp_path, capsys):
    path = tmp_path / "arm.toml"
    assert main(["convert", "arm7", str(path)]) == 0
    text = path.read_text().replace("limit = [-2.8973, 2.8973]", "limit = [0.5, 0.5]", 1)
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "setups.md").read_text(encoding="utf-8")
    entry = guide.partition("```toml\n")[2].partition("```")[0]
    path.write_text(f"{text}\n{entry}")
    capsys.readouterr()
    assert main(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "locked at 28.65 deg" in shown
    assert "(1 locked)" in shown
    pose = sy.load_skeleton(path).rest_pose()
    np.testing.assert_allclose(pose.transform("tool") @ (0.0, 0.0, 0.12, 1.0), (*pose.position("tcp"), 1.0))


def test_the_goal_without_a_name_has_the_name_of_its_joint():
    arm = sy.bundled("arm7")
    pose = sy.Pose(arm, {"joint2": 0.3, "joint4": -1.8, "joint6": 2.1})  # its tool points straight down
    place = pose.position("tool")
    ik = sy.IK(arm, [sy.PositionGoal("tool"), sy.DirectionGoal("tool", name="down")])
    solution = ik.solve({"tool": place, "down": (0.0, 0.0, -1.0)})
    assert solution.reached
    both = sy.IK(arm, [sy.PositionGoal("tool", name="tip"), sy.DirectionGoal("tool", name="down")])
    with pytest.raises(UnknownNameError, match="ive each of them a name"):
        both.solve({"tool": place})
