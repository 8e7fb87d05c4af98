"""What a name means: a frame (goals, targets, poses) or a joint (values), and sites, which are frames only."""

import copy
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from cli_runs import assert_refused, run
from synovia.batch import Solve
from synovia.clips.points import points_of
from synovia.files.poses import load_poses
from synovia.io.toml import write_skeleton
from synovia.lerobot import Arm, Kinematics
from synovia.retargeting.joint_map import draft_map


def joint(name: str, parent: str, child: str, axis: str, xyz: str = "0.1 0.02 0.05") -> str:
    """A hinge of a URDF file."""
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="0.1 0.2 0.3"/><axis xyz="{axis}"/><limit lower="-2" upper="2" velocity="3"/></joint>'
    )


@pytest.fixture
def arm_file(tmp_path: Path) -> Path:
    """An arm whose link ``gripper`` is the palm and whose joint ``gripper`` moves the jaw, as in the SO-100."""
    links = "".join(f'<link name="{name}"/>' for name in ("base", "upper", "fore", "gripper", "jaw", "elbow"))
    joints = [
        joint("shoulder", "base", "upper", "0 0 1"),
        joint("elbow", "upper", "fore", "0 1 0"),
        joint("roll", "fore", "gripper", "1 0 0"),
        joint("gripper", "gripper", "jaw", "0 0 1"),
        '<joint name="mount" type="fixed"><parent link="upper"/><child link="elbow"/></joint>',
    ]
    path = tmp_path / "arm.urdf"
    path.write_text(f'<robot name="arm">{links}{"".join(joints)}</robot>', encoding="utf-8")
    return path


@pytest.fixture
def arm(arm_file: Path) -> sy.Skeleton:
    return sy.load_skeleton(arm_file)


SITES = """<mujoco model="m"><compiler angle="radian"/><worldbody><site name="mark" pos="1 2 3" euler="0.3 0.2 0.1"/>
<body name="upper" pos="0 0 0.4"><joint name="shoulder" axis="0 0 1" range="-2 2"/><geom size=".02" mass="1"/>
<site name="upper_mid" pos="0.15 0 0.01"/>
<body name="fore" pos="0.3 0 0" euler="0.4 0 0"><joint name="elbow" axis="0 1 0" range="-2 2" pos="0 0 0.05"/>
<geom size=".02" mass="1"/><site name="same"/><site name="elbow" pos="0 0 0.06"/><site name="axis" pos="0 0 0.05"/>
<body name="hand" pos="0.25 0 0"><joint name="pitch" axis="0 1 0" range="-1.5 1.5"/>
<joint name="hand" axis="1 0 0" range="-1.5 1.5"/><joint name="last" axis="0 0 1" range="-1.5 1.5"/>
<geom size=".02" mass="1"/><site name="tcp" pos="0.08 0.01 -0.03" euler="0.2 1.2 -0.7"/><site/>
<site name="finger" pos="0.1 0.05 0"/></body></body></body></worldbody></mujoco>"""


@pytest.fixture
def sited(tmp_path: Path) -> sy.Skeleton:
    pytest.importorskip("mujoco")
    path = tmp_path / "sited.xml"
    path.write_text(SITES, encoding="utf-8")
    return sy.load_skeleton(path)


def plain(skeleton: sy.Skeleton) -> sy.Skeleton:
    """The same skeleton without sites."""
    return skeleton.with_joints([replace(each, sites=()) for each in skeleton.joints])


FRAMES = {
    "position": lambda s, n: s.rest_pose().position(n),
    "rotation": lambda s, n: s.rest_pose().rotation(n),
    "matrix": lambda s, n: s.rest_pose().matrix(n),
    "transform": lambda s, n: s.rest_pose().transform(n),
    "jacobian": lambda s, n: s.rest_pose().jacobian(n),
    "index": lambda s, n: s.index(n),
    "goal": lambda s, n: sy.IK(s, sy.PoseGoal(n)),
    "other joint": lambda s, n: sy.IK(s, sy.DistanceGoal("shoulder", n, maximum=1.0)),
    "root of a pole": lambda s, n: sy.IK(s, sy.PoleGoal("fore", root=n, tip="upper")),
    "targets": lambda s, n: sy.IK(s, sy.PositionGoal(3)).solve({n: (0.1, 0.1, 0.2)}),
    "targets of many": lambda s, n: sy.IK(s, sy.PositionGoal(3)).solve_many({n: [(0.1, 0.1, 0.2)]}),
    "targets_from": lambda s, n: sy.targets_from(sy.Motion(s, [s.rest_q], 30.0), [n]),
    "joint map": lambda s, n: draft_map(s, s, {"hips": ("shoulder", n)}),
    "points": lambda s, n: points_of(s, np.zeros((2, 1, 3)), [n], None, None),
    "problems": lambda s, n: sy.comparison.make_problems(s, [n], count=1, frames=3),
    "Kinematics": lambda s, n: Kinematics(s, n),
    "Arm": lambda s, n: Arm(s, n),
    "columns": lambda s, n: Solve(s)({f"{n}.x": [0.1], f"{n}.y": [0.1], f"{n}.z": [0.2]}),
}


@pytest.mark.parametrize("way", FRAMES)
def test_a_name_of_two_frames_is_refused_wherever_a_frame_is_meant(arm: sy.Skeleton, way: str) -> None:
    with pytest.raises(sy.errors.UnknownNameError, match=r"joint:gripper, link:gripper \(of joint 'roll'\)"):
        FRAMES[way](arm, "gripper")
    FRAMES[way](arm, "link:gripper")
    if way not in ("targets", "targets of many"):  # there the goal is on the link
        FRAMES[way](arm, "joint:gripper")
        FRAMES[way](arm, "roll")


@pytest.mark.parametrize("seed", range(3))
def test_prefixes_say_which_frame(arm: sy.Skeleton, seed: int) -> None:
    pose = arm.random_pose(seed)
    for name, row in (("joint:gripper", 4), ("link:gripper", 3), ("body:gripper", 3), ("link:jaw", 4), ("jaw", 4)):
        assert np.array_equal(pose.transform(name), pose.transform(row))
    for name in ("joint:gripper", "link:gripper"):
        target = pose.transform(name)
        solution = sy.solve(arm, sy.PoseGoal(name, transform=target), start=pose)
        assert solution.reached
        assert np.abs(solution.pose.transform(name) - target).max() < 1e-2
    ik = sy.IK(arm, [sy.PositionGoal("joint:gripper"), sy.PositionGoal("link:gripper", name="palm")], "lm")
    targets = {"jaw": pose.position(4), "palm": pose.position(3)}
    for keys in (targets, {"joint:gripper": targets["jaw"], "link:gripper": targets["palm"]}):
        solution = ik.solve(keys)
        assert np.abs(solution.pose.position(4) - targets["jaw"]).max() < 1e-3
        assert np.abs(solution.pose.position(3) - targets["palm"]).max() < 1e-3


def test_a_value_always_means_the_joint(arm: sy.Skeleton) -> None:
    for name in ("gripper", "joint:gripper", "jaw"):
        pose = sy.Pose(arm, {name: 0.4})
        assert pose[name] == pose[4] == 0.4
        assert arm.rest_pose().with_values({name: 0.4})["gripper"] == 0.4
        assert arm.with_limits({name: (-0.1, 0.5)}).joints[4].limit == sy.Interval(-0.1, 0.5)
        assert arm.value_range(name) == (-2.0, 2.0)
        assert arm.joint(name) is arm.joints[4]
        ik = sy.IK(
            arm, [sy.PositionGoal("roll"), sy.RangeGoal(name, 0.3, 0.5), sy.RestGoal({name: 0.4}, joints=[name])]
        )
        solution = ik.solve({"roll": arm.rest_pose().position("roll")}, start={name: 0.2})
        assert 0.29 < solution.pose[4] < 0.51
        still = np.repeat(arm.rest_pose().position("jaw")[None], 3, axis=0)
        assert sy.IK(arm, sy.PositionGoal("jaw")).track({"jaw": still}, velocity={name: 1.0}).reached.all()
    assert arm.value_index("link:gripper") == 3  # said with all letters, it is the joint that carries the link


OTHER_NAMES = {"elbow": ("joint:elbow", "link:fore"), "gripper": ("joint:gripper", "link:jaw", "jaw", "body:jaw")}


@pytest.mark.parametrize(("own", "other"), [(own, other) for own, names in OTHER_NAMES.items() for other in names])
def test_tables_and_files_take_every_name_of_a_joint(
    arm: sy.Skeleton, arm_file: Path, tmp_path: Path, own: str, other: str
) -> None:
    pose, clip, poses = tmp_path / "pose.json", tmp_path / "clip.csv", tmp_path / "poses.json"
    pose.write_text(f'{{"schema": "synovia.pose/1", "q": {{"{other}": 0.3}}}}', encoding="utf-8")
    poses.write_text(f'{{"schema": "synovia.poses/1", "poses": {{"a": {{"{other}": 0.3}}}}}}', encoding="utf-8")
    clip.write_text(f"time,{other}\n0,0.3\n1,0.4\n", encoding="utf-8")
    wanted = sy.Pose(arm, {own: 0.3})
    assert np.array_equal(sy.load_pose(pose, arm).q, wanted.q)
    assert np.array_equal(load_poses(poses, arm)["a"].q, wanted.q)
    assert np.array_equal(sy.formats.read_csv(clip, arm).q[0], wanted.q)
    there = wanted.position("link:jaw")
    rows = {**{f"link:jaw.{axis}": [value] for axis, value in zip("xyz", there, strict=True)}}
    answer = [Solve(arm_file, solver="lm")({**rows, f"start.{name}": [0.3]}) for name in (own, other)]
    assert np.array_equal(answer[0][own], answer[1][own])
    assert answer[0][own][0] == pytest.approx(0.3, abs=1e-9)


def test_balls_and_free_roots_in_tables_may_have_other_names(tmp_path: Path) -> None:
    body = sy.bundled("humanoid")
    name = body.roles["left_hand"]
    header = [f"{what}.{part}" for what in ("left_hand", "joint:hips") for part in ("qx", "qy", "qz", "qw")]
    path = tmp_path / "clip.csv"
    path.write_text(f"time,{','.join(header)}\n0,0.6,0,0,0.8,0,0,0,1\n", encoding="utf-8")
    clip = sy.formats.read_csv(path, body)
    assert clip.pose(0)[name].tolist() == [0.6, 0.0, 0.0, 0.8]


TWICE = {
    "pose": lambda s, v: sy.Pose(s, v),
    "with_values": lambda s, v: s.rest_pose().with_values(v),
    "start": lambda s, v: sy.solve(s, sy.PositionGoal("link:jaw", (0.1, 0.1, 0.1)), start=v),
    "start of many": lambda s, v: sy.IK(s, sy.PositionGoal("link:jaw")).solve_many([(0.1, 0.1, 0.1)], v),
    "limits": lambda s, v: s.with_limits({name: (-value, value) for name, value in v.items()}),
    "rest goal": lambda s, v: sy.solve(s, [sy.PositionGoal("link:jaw", (0.1, 0.1, 0.1)), sy.RestGoal(v)]),
    "factors": lambda s, v: sy.solve(s, [sy.PositionGoal("link:jaw", (0.1, 0.1, 0.1)), sy.RestGoal(joints=v)]),
    "largest_move": lambda s, v: sy.solve(
        s, sy.PositionGoal("link:jaw", (0.1, 0.1, 0.1)), sy.FullBody(attempts=1, largest_move=v)
    ),
    "velocity": lambda s, v: sy.IK(s, sy.PositionGoal("link:jaw")).track([(0.1, 0.1, 0.1)] * 2, velocity=v, fps=30),
    "columns of an arm": lambda s, v: Arm(s, "link:jaw", {f"{i}.pos": name for i, name in enumerate(v)}),
    "kinematics": lambda s, v: Kinematics(s, "link:jaw", list(v)),
}


@pytest.mark.parametrize("way", TWICE)
@pytest.mark.parametrize("names", [("elbow", "joint:elbow"), ("link:jaw", "gripper"), ("roll", 2)])
def test_a_joint_has_one_value_under_all_its_names(arm: sy.Skeleton, way: str, names: tuple[str | int, ...]) -> None:
    if names[1] == 2:
        names = ("roll", next(row for row, name in enumerate(arm.joint_names) if name == "roll"))
    with pytest.raises(sy.InputError, match="each joint once") as caught:
        TWICE[way](arm, dict(zip(names, (0.1, 0.4), strict=True)))
    assert repr(names[0]) in str(caught.value)
    assert repr(names[1]) in str(caught.value)


def test_files_and_tables_have_a_joint_once(arm: sy.Skeleton, arm_file: Path, tmp_path: Path) -> None:
    pose, clip = tmp_path / "pose.json", tmp_path / "clip.csv"
    pose.write_text('{"schema": "synovia.pose/1", "q": {"elbow": 0.1, "joint:elbow": 0.4}}', encoding="utf-8")
    clip.write_text("time,elbow,link:fore\n0,0.3,0.4\n", encoding="utf-8")
    with pytest.raises(sy.errors.FormatError, match=r"pose\.json: values of joint 'elbow': expected each joint once"):
        sy.load_pose(pose, arm)
    with pytest.raises(sy.errors.FormatError, match="'elbow', 'link:fore'"):
        sy.formats.read_csv(clip, arm)
    rows = {f"link:jaw.{axis}": [0.1] for axis in "xyz"}
    with pytest.raises(sy.InputError, match=r"'start\.elbow', 'start\.link:fore'"):
        Solve(arm_file)({**rows, "start.elbow": [0.1], "start.link:fore": [0.2]})


def test_names_that_mean_one_frame_need_no_prefix(arm: sy.Skeleton, sited: sy.Skeleton) -> None:
    for name in ("base", "upper", "fore", "shoulder", "roll", "jaw"):
        assert np.array_equal(arm.rest_pose().transform(name), arm.rest_pose().transform(arm.value_index(name)))
    with pytest.raises(sy.errors.UnknownNameError, match="joint:elbow, link:elbow"):
        arm.index("elbow")
    rows = [sy.Joint("a", kind=sy.Kind.HINGE, axis=(0, 0, 1), body="b"), sy.Joint("b", "a")]  # fixed, without offset
    assert sy.Skeleton(rows).rest_pose().position("b").tolist() == [0.0, 0.0, 0.0]
    assert sited.index("same") == sited.index("fore")  # a site in its body's frame
    assert sited.address(sited.value_index("elbow")) == "joint:elbow"


def test_a_prefix_may_be_part_of_a_name() -> None:
    hinge = {"kind": sy.Kind.HINGE, "axis": (0, 0, 1)}
    up = np.eye(4)
    up[2, 3] = 1.0
    s = sy.Skeleton([sy.Joint("joint:a", **hinge), sy.Joint("b", 0, rest=up, **hinge), sy.Joint("ns:b", 1, rest=up)])
    assert [s.index(name) for name in ("joint:a", "joint:joint:a", "b", "ns:b", "joint:ns:b")] == [0, 0, 1, 2, 2]
    s = sy.Skeleton([sy.Joint("joint:a", **hinge), sy.Joint("a", 0, rest=up, **hinge)])
    with pytest.raises(sy.errors.UnknownNameError, match="several"):
        s.index("joint:a")
    assert s.index("joint:joint:a") == 0


def test_the_library_gives_names_that_can_be_read_back(arm: sy.Skeleton, arm_file: Path, tmp_path: Path) -> None:
    assert arm.address(4) == arm.frame_names[4] == "joint:gripper"
    assert [arm.index(name) for name in arm.frame_names] == list(range(len(arm)))
    assert arm.joint_names[4] in arm.tips
    problems = sy.comparison.make_problems(arm, count=2, frames=3)
    assert "joint:gripper" in problems.targets
    assert sy.IK(arm, problems.goals, "lm").solve_many(problems.of_kind(problems.targets)).reached.all()
    assert draft_map(arm, arm, {"hips": ("joint:gripper", "link:gripper")})["hips"] == ("joint:gripper", "roll")
    far = {"joint:gripper": (9.0, 0.0, 0.0)}
    solution = sy.IK(arm, sy.PositionGoal("joint:gripper")).solve(far)
    assert solution.explain()
    assert solution.reasons is not None
    goals = tmp_path / "goals.toml"
    sy.write_goals([sy.PositionGoal(arm.address(4), (0.2, 0.1, 0.1))], goals)
    assert [goal.joint for goal in sy.read_goals(goals, arm)] == ["joint:gripper"]
    sy.write_goals([sy.PositionGoal("gripper", (0.2, 0.1, 0.1))], goals, force=True)
    with pytest.raises(sy.errors.FormatError, match="link:gripper"):
        sy.read_goals(goals, arm)
    tip = sy.Skeleton([*arm.joints[:5]])  # one tip, whose name may be left out
    place = arm.random_pose(1).position(4)
    answer = Solve(tip)({axis: [value] for axis, value in zip("xyz", place, strict=True)})
    assert list(answer["status"]) == ["REACHED"]


def test_the_command_line_takes_and_prints_prefixes(arm: sy.Skeleton, arm_file: Path) -> None:
    place = ",".join(map(str, arm.random_pose(2).position(4)))
    assert_refused(run("solve", arm_file, "-t", f"gripper={place}"), "joint:gripper, link:gripper")
    data = run("solve", arm_file, "-t", f"joint:gripper={place}", "--json").data
    assert data["goals"][0]["joint"] == "joint:gripper"
    assert "gripper" in data["q"]
    assert run("solve", arm_file, "-t", f"4={place}", "--json").data["goals"][0]["joint"] == "joint:gripper"
    assert "joint:gripper=" in run("solve", arm_file).err


# -- sites --


def placed(skeleton: sy.Skeleton, pose: sy.Pose) -> tuple[object, object]:
    """MuJoCo's model and data in a pose."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(SITES)
    data = mujoco.MjData(model)
    for j in range(model.njnt):
        data.qpos[model.jnt_qposadr[j]] = pose[f"joint:{model.joint(j).name}"]
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize("seed", range(4))
def test_joints_bodies_and_sites_are_where_mujoco_has_them(sited: sy.Skeleton, seed: int) -> None:
    import mujoco

    pose = sited.random_pose(seed)
    model, data = placed(sited, pose)
    for s in range(model.nsite):
        if name := model.site(s).name:
            at = pose.transform(f"site:{name}")
            assert np.abs(at[:3, 3] - data.site_xpos[s]).max() < 1e-12
            assert np.abs(at[:3, :3].ravel() - data.site_xmat[s]).max() < 1e-12
            J = np.zeros((6, model.nv))
            mujoco.mj_jacSite(model, data, J[:3], J[3:], s)
            assert np.abs(pose.jacobian(f"site:{name}") - J).max() < 1e-12
    for b in range(model.nbody):
        assert np.abs(pose.position(f"link:{model.body(b).name}") - data.xpos[b]).max() < 1e-12
    for j in range(model.njnt):
        assert np.abs(pose.position(f"joint:{model.joint(j).name}") - data.xanchor[j]).max() < 1e-12
    for name in ("tcp", "finger", "mark", "upper_mid", "same"):
        assert np.array_equal(pose.transform(name), pose.transform(f"site:{name}"))
    for name, listed in (("hand", "joint:hand, link:hand"), ("elbow", "joint:elbow, site:elbow")):
        with pytest.raises(sy.errors.UnknownNameError, match=listed):
            pose.position(name)
    with pytest.raises(sy.InputError, match=r"is a site.*Use its joint, 'last'"):
        sited.index("tcp")
    with pytest.raises(sy.InputError, match="is a site"):
        sy.Pose(sited, {"tcp": 0.3})


@pytest.mark.parametrize("solver", [None, "lm", "full-body"])
def test_goals_of_every_kind_can_be_on_sites(sited: sy.Skeleton, solver: str | None) -> None:
    pose = sited.random_pose(5)
    tcp, finger, mid = (pose.transform(name) for name in ("tcp", "finger", "upper_mid"))
    on_tcp = (tcp @ [0.01, 0.02, 0.03, 1.0])[:3]
    ahead = tcp[:3, 3] + 0.7 * tcp[:3, :3] @ [0.0, 0.0, 1.0]
    between = float(np.linalg.norm(tcp[:3, 3] - mid[:3, 3]))
    normal = tcp[:3, :3] @ [0.0, 1.0, 0.0]
    goals = {
        "pose": sy.PoseGoal("tcp", transform=tcp),
        "point": sy.PositionGoal("site:tcp", on_tcp, offset=(0.01, 0.02, 0.03)),
        "rotation": sy.RotationGoal("tcp", tcp[:3, :3]),
        "direction": sy.DirectionGoal("tcp", (0, 1, 0), tuple(normal)),
        "aim": sy.AimGoal("tcp", tuple(ahead), axis=(0, 0, 1)),
        "distance": sy.DistanceGoal("tcp", "upper_mid", minimum=between, maximum=between),
        "relative": sy.RelativeGoal("tcp", "upper_mid", transform=np.linalg.inv(mid) @ tcp),
        "contact": sy.ContactGoal("tcp", tcp[:3, 3], normal=tuple(normal), axis=(0, 1, 0)),
        "plane": sy.PlaneGoal("finger", tuple(finger[:3, 3]), normal=(0, 0, 1)),
    }
    for name, goal in goals.items():
        if solver is None or name in ("pose", "distance", "relative"):
            start = sited.random_pose(6)
            solution = sy.solve(sited, goal, solver, start=start, tolerance=(1e-7, 1e-7))
            assert solution.reached, name
            made = {each: solution.pose.transform(each) for each in ("tcp", "finger", "upper_mid")}
            off = {
                "pose": made["tcp"] - tcp,
                "point": (made["tcp"] @ [0.01, 0.02, 0.03, 1.0])[:3] - on_tcp,
                "rotation": made["tcp"][:3, :3] - tcp[:3, :3],
                "direction": made["tcp"][:3, 1] - normal,
                "aim": np.cross(ahead - made["tcp"][:3, 3], made["tcp"][:3, 2]),
                "distance": np.linalg.norm(made["tcp"][:3, 3] - made["upper_mid"][:3, 3]) - between,
                "relative": np.linalg.inv(made["upper_mid"]) @ made["tcp"] - np.linalg.inv(mid) @ tcp,
                "contact": np.append(made["tcp"][:3, 3] - tcp[:3, 3], made["tcp"][:3, 1] - normal),
                "plane": min(made["finger"][2, 3] - finger[2, 3], 0.0),
            }[name]
            assert np.abs(off).max() < 1e-5, name
            assert (
                np.abs(
                    solution.frames[0][:3, 3]
                    - (made["finger" if name == "plane" else "tcp"] @ [*solution.goals[0].offset[:3, 3], 1.0])[:3]
                ).max()
                < 1e-9
            )


def test_a_pole_can_have_sites(sited: sy.Skeleton) -> None:
    goals = [sy.PositionGoal("finger"), sy.PoleGoal("upper_mid", (0.5, 0.5, 0.5), root="mark", tip="tcp")]
    ik = sy.IK(sited, goals, "lm")
    start = sited.random_pose(3)
    solution = ik.solve({"finger": start.position("finger")}, start=start)
    error = solution.errors[1].angle
    a, b, c = (solution.pose.position(name) for name in ("mark", "upper_mid", "tcp"))
    line = (c - a) / np.linalg.norm(c - a)
    u, v = (p - (p @ line) * line for p in (b - a, np.array((0.5, 0.5, 0.5)) - a))
    assert abs(abs(np.arctan2(line @ np.cross(u, v), u @ v)) - error) < 1e-6


def test_targets_take_the_name_of_a_site_and_of_nothing_else_on_its_body(sited: sy.Skeleton) -> None:
    pose = sited.random_pose(1)
    ik = sy.IK(sited, [sy.PositionGoal("tcp"), sy.RotationGoal("fore", weight=1e-6)])
    for key in ("tcp", "site:tcp"):
        solution = ik.solve({key: pose.position("tcp")}, start=pose)
        assert solution.errors[0].position < 1e-4
    for key in ("last", "link:hand", "finger"):
        with pytest.raises(sy.errors.UnknownNameError, match="no goal"):
            ik.solve({key: pose.position("tcp")})
    for again in (
        pickle.loads(pickle.dumps(ik)),
        copy.copy(ik),
        sy.IK.of(ik.problem.with_solver(sy.LevenbergMarquardt())),
    ):
        same = again.solve({"tcp": pose.position("tcp")}, start=pose)
        assert np.abs(same.pose.position("tcp") - pose.position("tcp")).max() < 1e-3
        assert np.abs(same.frames[0][:3, 3] - same.pose.position("tcp")).max() < 1e-12
    clip = sy.Motion(sited, [sited.random_pose(k).q for k in range(3)], 30.0)
    paths = sy.targets_from(clip, ["tcp"], rotations=True)["tcp"]
    assert np.abs(paths - [clip.pose(k).transform("tcp") for k in range(3)]).max() < 1e-12
    assert np.abs(sy.targets_from(clip, ["tcp"])["tcp"] - paths[:, :3, 3]).max() == 0.0


def test_a_target_belongs_to_the_goal_whose_joint_is_written_so(arm: sy.Skeleton) -> None:
    pose = sy.Pose(arm, {"shoulder": 0.3, "elbow": 0.5, "roll": -0.4})
    place, axis = pose.position("link:gripper"), pose.matrix("link:gripper")[:, 0]
    goals = [sy.PositionGoal("link:gripper"), sy.DirectionGoal("joint:roll", (1, 0, 0))]  # one frame under two names
    ik = sy.IK(arm, goals)
    targets = {"link:gripper": place, "joint:roll": axis}
    assert ik.solve(targets, start=pose).reached
    assert ik.solve_many({key: value[None] for key, value in targets.items()}, starts=pose).reached.all()
    with pytest.raises(sy.errors.UnknownNameError, match="'roll' means 2 goals"):  # neither is written so
        ik.solve({"roll": place})
    named = sy.IK(arm, [goals[0], sy.DirectionGoal("joint:roll", (1, 0, 0), name="link:gripper")])
    assert named.solve({"link:gripper": axis}, start=pose).reached  # the name of a goal comes first


def test_sites_change_nothing_else(sited: sy.Skeleton) -> None:
    bare = plain(sited)
    assert sited.joint_names == bare.joint_names
    assert sited.tips == bare.tips
    assert dict(sited.roles) == dict(bare.roles)
    assert sited.size == bare.size
    assert all(np.array_equal(getattr(sited.tables, part), getattr(bare.tables, part)) for part in ("ints", "fixed"))
    assert bare.site_names == ()
    assert set(sited.site_names) == {"mark", "upper_mid", "same", "elbow", "axis", "tcp", "finger"}


def test_sites_stay_with_copies_and_files(sited: sy.Skeleton, tmp_path: Path) -> None:
    sy.formats.write_skeleton(sited, tmp_path / "s.toml")
    again = sy.load_skeleton(tmp_path / "s.toml")
    others = [again, pickle.loads(pickle.dumps(sited)), copy.deepcopy(sited), sited.with_limits({"last": (-0.1, 0.1)})]
    for other in [*others, sited.with_root("free"), sited.with_root("x,yaw"), sy.Skeleton(sited.joints)]:
        assert other.site_names == sited.site_names
        for name in sited.site_names:
            at = other.rest_pose().transform(f"site:{name}")
            assert np.abs(at - sited.rest_pose().transform(f"site:{name}")).max() < 1e-12
    with pytest.raises(ValueError, match="read-only"):
        others[1].joints[-1].sites[0].rest[0, 3] = 1.0
    data = run("inspect", tmp_path / "s.toml", "--json").data
    assert {site["name"] for site in data["sites"]} == set(sited.site_names)
    assert "'tcp'" in run("inspect", tmp_path / "s.toml").out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sites = 3", "sites has the wrong form"),
        ("sites = [{ position = [0, 0, 1] }]", "site has no name"),
        ('sites = [{ name = "t", pos = [0, 0, 1] }]', "unknown key 'pos'"),
        ('sites = [{ name = "t", position = [0, 0] }]', "a list of 3 numbers"),
        ('sites = [{ name = "t", rotation_xyzw = [0, 0, 0, 2] }]', "rotation_xyzw"),
    ],
)
def test_sites_of_a_file_are_checked(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(f'schema = "synovia.skeleton/1"\n[[joint]]\nname = "a"\nkind = "fixed"\n{line}\n', encoding="utf-8")
    with pytest.raises(sy.errors.FormatError, match=words):
        sy.load_skeleton(path)


def test_a_site_is_checked() -> None:
    with pytest.raises(sy.InputError, match="rest transform"):
        sy.skeletons.Site("tcp", np.diag((2.0, 1.0, 1.0, 1.0)))
    with pytest.raises(sy.InputError, match="name of a site"):
        sy.skeletons.Site("")
    with pytest.raises(sy.InputError, match="sites"):
        sy.Joint("a", sites=["tcp"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("parent", "row"),
    [
        ("link:gripper", "roll"),
        ("joint:gripper", "gripper"),
        ("gripper", "gripper"),  # as for values, the joint of this name comes before the link
        ("fore", "elbow"),
        ("body:jaw", "gripper"),
        ("mount", "mount"),
    ],
)
def test_a_parent_may_be_named_by_its_link(arm: sy.Skeleton, tmp_path: Path, parent: str, row: str) -> None:
    tool = sy.Skeleton(
        [sy.Joint("tcp", parent=parent), *[replace(each, parent=_name(arm, each)) for each in arm.joints]]
    )
    assert tool.joint_names[tool.parents[tool.value_index("tcp")]] == row
    path = tmp_path / "arm.toml"
    write_skeleton(arm, path)
    path.write_text(
        path.read_text(encoding="utf-8") + f'\n[[joint]]\nname = "tcp"\nkind = "fixed"\nparent = "{parent}"\n',
        encoding="utf-8",
    )
    read = sy.load_skeleton(path)
    assert read.joint_names[read.parents[read.value_index("tcp")]] == row


def _name(skeleton: sy.Skeleton, joint: sy.Joint) -> str | None:
    """The name of a joint's parent."""
    above = skeleton.parents[skeleton.joint_names.index(joint.name)]
    return skeleton.joint_names[above] if above >= 0 else None


def test_a_link_of_several_joints_is_carried_by_the_last(sited: sy.Skeleton) -> None:
    tool = sy.Skeleton([*sited.joints, sy.Joint("more", parent="link:hand")])
    assert tool.joint_names[tool.parents[-1]] == "last"


def test_an_unknown_parent_is_told_with_the_nearest_names(arm: sy.Skeleton, sited: sy.Skeleton) -> None:
    with pytest.raises(sy.InputError, match=r"parent 'fort' of joint 'tcp' does not exist.* 'fore'"):
        sy.Skeleton([*arm.joints, sy.Joint("tcp", parent="fort")])
    for name in ("tcp", "site:tcp"):
        with pytest.raises(sy.InputError, match="It is a site: use its joint 'last'"):
            sy.Skeleton([*sited.joints, sy.Joint("more", parent=name)])


def test_a_name_of_the_file_comes_before_a_role(sited: sy.Skeleton) -> None:
    hinge = {"kind": sy.Kind.HINGE, "axis": (0, 0, 1)}
    up = np.eye(4)
    up[2, 3] = 1.0
    head = sy.Joint("b", "a", role="head", rest=up, sites=(sy.skeletons.Site("hips", up),), **hinge)
    s = sy.Skeleton([sy.Joint("a", role="hips", **hinge), head])
    assert s.role_rows["hips"] == 0
    assert s.roles["hips"] == "a"
    assert s.rest_pose().position("hips").tolist() == [0.0, 0.0, 2.0]
    assert s.value_index("hips") == 0


def test_goals_on_sites_and_on_names_of_two_frames_come_to_the_page(sited: sy.Skeleton, arm: sy.Skeleton) -> None:
    pytest.importorskip("viser")
    from synovia.viewer.editing.first_goals import add_goals, first_goals
    from synovia.viewer.editing.session import Session

    def points(goal: sy.Goal) -> list[np.ndarray]:
        located, rows = goal.located(sited)
        offsets = (goal.offset, getattr(goal, "other_offset", None))
        ends = enumerate(zip(rows, offsets, strict=False))
        return [pose.transform(row) @ located.place(k) @ offset[:, 3] for k, (row, offset) in ends]

    pose = sited.random_pose(2)
    session = Session(sited)
    given = [sy.PoseGoal("tcp"), sy.DistanceGoal("tcp", "upper_mid", maximum=0.1, other_offset=(0, 0, 0.1))]
    add_goals(session.goals, given)
    for goal, editor in zip(given, session.goals.editors, strict=True):
        made = editor.goal(sited.address)
        assert np.abs(np.array(points(goal)) - points(made)).max() < 1e-12
    session = Session(arm)
    first_goals(session.goals)
    for editor in session.goals.editors:
        if editor.row is not None:
            assert arm.index(editor.goal(arm.address).joint) == editor.row
