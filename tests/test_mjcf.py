"""MJCF: what each joint type becomes, and what a broken or hostile file is told."""

import copy
import math
import pickle
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from synovia.errors import FormatError, MissingExtraError, SynoviaError
from synovia.io.load import load_skeleton
from synovia.io.mjcf.files import MOST_BODIES, MOST_POINTS, Budget
from synovia.io.xmltree import parse
from synovia.model import Kind, Skeleton
from synovia.model.limits import Interval, SwingTwist

HANG = 10.0  # seconds: no measurement, only far from hanging, also on a busy machine

mujoco = pytest.importorskip("mujoco")

BALL = '<geom type="sphere" size="0.1" mass="2" pos="0.1 0.2 0.3"/>'
MUSCLE = '<actuator><muscle joint="x"/></actuator>'


def write(folder: Path, body: str, extra: str = "", name: str = "robot.xml") -> Path:
    path = folder / name
    path.write_text(f"<mujoco>\n{extra}\n<worldbody>\n{body}\n</worldbody>\n</mujoco>\n")
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cwd")
    monkeypatch.chdir(folder)
    return folder


def test_joints_and_bodies(tmp_path: Path) -> None:
    body = f"""<body name="base" pos="0 0 1"><freejoint name="root"/>{BALL}
      <body name="arm" pos="1 0 0"><joint name="swing" axis="0 2 0" range="-30 60"/>{BALL}
        <body name="rod"><joint type="slide" axis="1 0 0" range="-0.1 0.4"/>{BALL}
          <body><joint name="eye" type="ball"/>{BALL}<body name="tool" pos="0 0 1"/></body></body></body></body>"""
    s = load_skeleton(write(tmp_path, body))
    assert s.joint_names == ("world", "root", "swing", "rod_joint", "eye", "tool")
    assert [j.body for j in s.joints] == ["world", "base", "arm", "rod", "body4", "tool"]
    assert [j.kind for j in s.joints] == [Kind.FIXED, Kind.FREE, Kind.HINGE, Kind.SLIDE, Kind.BALL, Kind.FIXED]
    assert (s.meters_per_unit, s.up, s.forward, s.name) == (1.0, "z", "x", "robot.xml")
    swing = s.joint("swing").limit
    assert isinstance(swing, Interval)
    assert (swing.lower, swing.upper) == pytest.approx((-math.pi / 6, math.pi / 3))
    assert s.joint("rod").limit == Interval(-0.1, 0.4)
    assert s.joint("swing").mass == pytest.approx(2.0)
    assert np.allclose(s.joint("swing").com, [0.1, 0.2, 0.3])
    assert np.allclose(s.rest_pose().position("base"), [0, 0, 1])


def test_an_anchor_off_the_origin_gets_a_row_that_leads_back(tmp_path: Path) -> None:
    body = f'<body name="b"><joint name="j" axis="0 0 1" pos="1 0 5"/>{BALL}</body>'
    s = load_skeleton(write(tmp_path, body))
    assert s.joint_names == ("world", "j", "b")
    pose = s.rest_pose().with_values({"j": math.pi / 2})
    assert np.allclose(pose.position("j")[:2], [1, 0])
    assert np.allclose(pose.position("b"), [1, -1, 0])
    assert s.joint("j").mass == 0.0
    assert s.joint("b").mass == pytest.approx(2.0)


def test_an_anchor_on_the_axis_through_the_origin_needs_none(tmp_path: Path) -> None:
    body = f'<body name="b"><joint name="j" axis="0 0 1" pos="0 0 5"/>{BALL}</body>'
    s = load_skeleton(write(tmp_path, body))
    assert s.joint_names == ("world", "j")
    assert s.index("b") == s.index("j")


def test_a_body_named_as_its_joint(tmp_path: Path) -> None:
    body = f'<body name="x"><joint name="x" pos="1 0 0"/>{BALL}</body>'
    s = load_skeleton(write(tmp_path, body))
    assert s.joint_names == ("world", "x", "x_frame")
    assert s.joint("x_frame").body == "x"


def test_q_is_qpos_also_with_a_reference(tmp_path: Path) -> None:
    body = f"""<body name="a" pos="0 0 1"><joint name="h" axis="0 0 1" ref="90" range="0 180"/>{BALL}
      <body name="b" pos="1 0 0"><joint name="s" type="slide" axis="1 0 0" ref="0.5"/>{BALL}</body></body>"""
    s = load_skeleton(write(tmp_path, body))
    at_ref = s.rest_pose().with_values({"h": math.pi / 2, "s": 0.5})
    assert np.allclose(at_ref.position("b"), [1, 0, 1])
    assert np.allclose(s.rest_pose().with_values({"h": math.pi, "s": 0.7}).position("b"), [0, 1.2, 1])
    assert s.joint("h").preferred == pytest.approx(math.pi / 2)
    assert s.joint("h").limit == Interval(0.0, math.pi)


@pytest.mark.parametrize("degrees", [1, 30, 90, 150, 179])
def test_no_pose_of_a_ball_leaves_its_cone(tmp_path: Path, degrees: float) -> None:
    body = f'<body name="b"><joint name="j" type="ball" range="0 {degrees}"/>{BALL}</body>'
    s = told(write(tmp_path, body))
    assert s.notes == (
        "The limits of ball joints are replaced by swing and twist limits inside MuJoCo's total angle: 'j'.",
    )
    limit = s.joint("j").limit
    assert isinstance(limit, SwingTwist)
    turns = [np.degrees(s.random_pose(seed).rotation("j").magnitude()) for seed in range(300)]
    assert max(turns) <= degrees + 1e-9
    assert max(turns) > 0.6 * degrees


def test_a_ball_of_half_a_turn_has_no_limit(tmp_path: Path) -> None:
    body = f'<body name="b"><joint name="j" type="ball" range="0 180"/>{BALL}</body>'
    assert load_skeleton(write(tmp_path, body)).joint("j").limit is None


TWO = f"""<body name="a"><joint name="x" ref="10"/>{BALL}
<body name="b"><joint name="y" type="slide" ref="0.5" range="-9 9"/>{BALL}</body></body>"""


def equality(text: str) -> str:
    return f'<equality><joint joint1="y" {text}/></equality>'


def test_linear_couplings_become_followers(tmp_path: Path) -> None:
    s = load_skeleton(write(tmp_path, TWO, equality('joint2="x" polycoef="0.1 2 0 0 0"')))
    pose = s.rest_pose().with_values({"x": 1.0})
    assert pose["y"] == pytest.approx(0.5 + 0.1 + 2.0 * (1.0 - math.radians(10)))


def test_a_coupling_to_nothing_holds_the_joint(tmp_path: Path) -> None:
    s = told(write(tmp_path, TWO, equality('polycoef="0.25 1 0 0 0"')))
    assert s.notes == ("Joints that cannot move, because their limits leave one value: 'y' (at 0.75).",)
    assert s.joint("y").limit == Interval(0.75, 0.75)
    assert s.rest_pose()["y"] == 0.75


def test_reversed_ranges_and_bodies_moved_from_outside_are_told(tmp_path: Path) -> None:
    body = f'<body><joint name="j" range="90 -90"/>{BALL}</body><body name="hand" mocap="true">{BALL}</body>'
    s = told(write(tmp_path, body))
    assert s.joint("j").limit is None
    assert s.joint("hand").kind is Kind.FIXED
    assert s.notes == (
        "Reversed ranges were ignored: 'j'.",
        "Bodies that a simulation moves from outside (mocap) are fixed: 'hand'.",
    )


def test_numbers_for_users_and_text_after_the_model_do_no_harm(tmp_path: Path) -> None:
    path = write(tmp_path, f'<body><joint name="j"/>{BALL}</body>', '<size nuserdata="600000"/>')
    assert load_skeleton(path).nv == 1
    path.write_bytes(b"\n" + path.read_bytes() + b"</mujoco>")
    assert told(path).notes[0].startswith("Content after </mujoco>")


def test_an_inactive_coupling_is_none(tmp_path: Path) -> None:
    s = load_skeleton(write(tmp_path, TWO, equality('joint2="x" polycoef="0 1 1 0 0" active="false"')))
    assert s.joint("y").mimic is None


def told(path: Path) -> Skeleton:
    """Return the skeleton of a file that cannot be kept as it is, and hold the warning to its notes."""
    with pytest.warns(UserWarning, match=re.escape(str(path))) as caught:
        s = load_skeleton(path)
    assert len(caught) == 1
    assert str(caught[0].message).startswith(f"{path}: {s.notes[0]}")
    assert caught[0].filename == __file__
    return s


BENT = f"""<body name="a"><joint name="x" ref="10"/>{BALL}
<body name="b" pos="1 0 0"><joint name="y" ref="-20" range="-90 90"/>{BALL}</body></body>"""


@pytest.mark.parametrize(
    ("extra", "followers"),
    [
        (equality('joint2="x" polycoef="0.1 1 0.4 -0.3 0.2"'), 0),  # a polynomial
        (equality('joint2="x"') + equality('polycoef="1 0 0 0 0"'), 1),  # the joint is coupled already
        (equality('joint2="x"') + '<equality><joint joint1="x" joint2="y" polycoef="0.2 .5 0 0 0"/></equality>', 1),
    ],
)
def test_couplings_of_other_kinds_are_kept(tmp_path: Path, extra: str, followers: int) -> None:
    path = write(tmp_path, BENT, extra)
    s = load_skeleton(path)
    assert s.notes == ()
    assert sum(joint.mimic is not None for joint in s.joints) == followers
    assert [type(tie) for tie in s.loops] == [sy.Coupling]
    assert residual(path, s) < 1e-9


def test_a_rounded_range_does_not_stop_what_a_joint_follows(tmp_path: Path) -> None:
    bent = BENT.replace('name="x"', 'name="x" range="0 120"').replace('range="-90 90"', 'range="-20 8"')
    s = told(write(tmp_path, bent, equality('joint2="x" polycoef="0.2 0.6 -0.3 0 0"')))
    assert s.notes[0].startswith("The range of joint 'y' was widened to -0.3491 to 0.15")
    assert "otherwise 'x', which it follows, could not move through its whole range" in s.notes[0]
    turns = [float(s.random_pose(seed)["x"]) for seed in range(40)]
    assert max(turns) > math.radians(100)


def residual(path: Path, s: Skeleton) -> float:
    """Return the largest residual of MuJoCo's equalities in random poses, which are closed ones of its values too."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    worst = 0.0
    for seed in range(5):
        pose = s.random_pose(seed)
        data.qpos[:] = sy.to_qpos(pose, model)
        assert np.abs(sy.from_qpos(s, data.qpos, model).frames - pose.frames).max() < 1e-9
        mujoco.mj_forward(model, data)
        ties = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        worst = max(worst, float(np.abs(data.efc_pos[ties]).max(initial=0.0)))
    return worst


LIMITED = f"""<body name="a"><joint name="x" range="-60 60"/>{BALL}<site name="s"/>
<body name="b"><joint name="y" range="0 20"/>{BALL}
<body name="c"><joint name="z"/>{BALL}<site name="t"/></body></body></body>"""
FIXED = '<tendon><fixed name="f"{}><joint joint="x" coef="1"/><joint joint="y" coef="1"/></fixed></tendon>'
PLATES = """<worldbody><body name="hand" mocap="true"/><body name="post"/><site name="far" pos="0 9 0"/></worldbody>"""
SPATIAL = '<tendon><spatial name="f"><site site="s"/><site site="t"/></spatial></tendon>'


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (
            PLATES + '<equality><weld body1="a" body2="hand"/></equality>',
            "The constraint <weld> between body 'a' and body 'hand' was not kept: a simulation moves body 'hand' from",
        ),
        (
            PLATES + '<equality><connect body1="world" body2="post" anchor="0 0 0"/></equality>',
            "The constraint <connect> between body 'world' and body 'post' was not kept: no joint moves one end",
        ),
        (
            PLATES + '<equality><connect name="loop" site1="far" site2="t"/></equality>',
            "The constraint <connect> 'loop' between site 'far' and site 't' was not kept: it cannot be closed near",
        ),
        (
            FIXED.format("")
            + FIXED.format("").replace('"f"', '"g"')
            + '<equality><tendon tendon1="f" tendon2="g" polycoef="0 1 1 0 0"/></equality>',
            "The constraint <tendon> between tendon 'f' and tendon 'g' was not kept: it is a polynomial of several",
        ),
        ('<equality><weld body1="c" active="false"/></equality>', None),
        (FIXED.format(""), None),
        (
            FIXED.format(' range="-1 1"'),
            "The limits of tendon 'f', which restrict joints 'x', 'y' together, were not kept.",
        ),
        (
            SPATIAL + '<equality><tendon tendon1="f"/></equality>',
            "The constraint <tendon> on tendon 'f' was not kept: the length of a spatial tendon is not a sum of joint",
        ),
    ],
)
def test_what_else_binds_motion_is_told(tmp_path: Path, extra: str, says: str | None) -> None:
    path = write(tmp_path, LIMITED, extra)
    if says is None:
        assert load_skeleton(path).notes == ()
    else:
        assert any(note.startswith(says) for note in told(path).notes)


def test_the_range_of_a_follower_binds_its_leader_as_in_mujoco(tmp_path: Path) -> None:
    """A motor pushes the leader as far as MuJoCo lets it go."""
    path = write(
        tmp_path,
        LIMITED,
        """<option gravity="0 0 0"/><equality><joint joint1="y" joint2="x" polycoef="0 2 0 0 0"/></equality>
        <default><joint damping="1"/></default><actuator><motor joint="x" ctrlrange="0 1"/></actuator>""",
    )
    s = load_skeleton(path)
    assert s.notes == ()
    assert s.value_range("x") == pytest.approx((0.0, math.radians(10)))
    assert np.isinf([s.limits[0][1], s.limits[1][1]]).all()
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.ctrl[0] = 0.05
    mujoco.mj_step(model, data, 10000)
    assert data.qpos[0] == pytest.approx(math.radians(10), abs=0.01)


@pytest.mark.parametrize(
    ("equalities", "ends"),
    [
        ((("y", "-0.2 1 0 0 0"),), (0.2, 0.2 + math.radians(20))),  # out of its range while the leader is at 0
        ((("y", "0 1 0 0 0"), ("z", "0 2 0 0 0")), (0.1, math.radians(20))),  # two that leave something in common
        ((("y", "0 -1 0 0 0"),), (-math.radians(20), 0.0)),
    ],
)
def test_ranges_of_followers_that_leave_something_to_a_leader_are_kept(tmp_path: Path, equalities, ends) -> None:
    body = LIMITED.replace('<joint name="z"/>', f'<joint name="z" range="{math.degrees(0.2)} 60"/>')
    joints = "".join(f'<joint joint1="{a}" joint2="x" polycoef="{c}"/>' for a, c in equalities)
    s = load_skeleton(write(tmp_path, body, f"<equality>{joints}</equality>"))
    assert s.notes == ()
    assert s.value_range("x") == pytest.approx(ends)


def test_a_range_that_leaves_nothing_to_a_leader_is_told(tmp_path: Path) -> None:
    s = told(write(tmp_path, LIMITED, '<equality><joint joint1="y" joint2="x" polycoef="9 2 0 0 0"/></equality>'))
    assert s.notes == ("The range of joint 'y' was not kept: it leaves no valid value for 'x', which it follows.",)
    assert s.value_range("x") == pytest.approx((-math.pi / 3, math.pi / 3))


BALLS = f"""<body name="a" pos="0 0 1"><joint name="a" type="ball"/>{BALL}<site name="p" pos=".5 0 0" euler="0 30 0"/>
<body name="b" pos="1 0 0"><joint name="x"/><joint name="y" axis="0 1 0" ref="10"/>{BALL}</body></body>
<body name="c" pos="0 1 1"><joint name="c" type="ball"/>{BALL}
<body name="d" pos="1 0 0"><joint name="z" pos="0 0 .1" axis="0 1 0"/><joint name="s" type="slide"/>{BALL}
<site name="q" pos=".2 0 0" euler="20 0 0"/></body></body>
<body name="e" pos="3 0 0"><freejoint/>{BALL}</body>"""


@pytest.mark.parametrize(
    ("equality", "kind", "rows"),
    [
        ('<connect body1="b" body2="d" anchor="0 .5 .1"/>', "point", 3),
        ('<connect body1="b" anchor="0 .5 .1"/>', "point", 3),  # to the world
        ('<connect site1="p" site2="q"/>', "point", 3),
        ('<weld body1="b" body2="d"/>', "weld", 6),
        ('<weld body1="b" body2="e" anchor="0 .1 0" relpose="0 .2 0 .8 .6 0 0"/>', "weld", 6),
        ('<weld body1="e"/>', "weld", 6),
        ('<weld site1="q" site2="p"/>', "weld", 6),
        ('<weld body1="b" body2="d" torquescale="0"/>', "point", 3),
    ],
)
def test_loops_are_those_of_mujoco(tmp_path: Path, equality: str, kind: str, rows: int) -> None:
    path = write(tmp_path, BALLS, f"<equality>{equality}</equality>")
    s = load_skeleton(path)
    (loop,) = s.loops
    assert isinstance(loop, sy.Loop)
    assert (loop.kind, loop.rows) == (kind, rows)
    assert residual(path, s) < 1e-9


def test_fixed_tendons_are_couplings(tmp_path: Path) -> None:
    tendons = FIXED.format("") + '<tendon><fixed name="g"><joint joint="z" coef="-.5"/></fixed></tendon>'
    for polynomial in ("0.1 2 0 0 0", "0.1 1 0.3 -0.2 0.1"):
        text = f'<equality><tendon name="t" tendon1="f" tendon2="g" polycoef="{polynomial}"/></equality>'
        path = write(tmp_path, LIMITED.replace('name="z"', 'name="z" ref="20"'), tendons + text)
        s = load_skeleton(path)
        assert [tie.label for tie in s.loops] == ["t"]
        assert residual(path, s) < 1e-9
    path = write(
        tmp_path, LIMITED, FIXED.format("") + '<equality><tendon tendon1="f" polycoef=".2 0 0 0 0"/></equality>'
    )
    (only,) = load_skeleton(path).loops
    assert isinstance(only, sy.Coupling)
    assert (only.terms, only.equals) == ({"x": (1.0,), "y": (1.0,)}, 0.2)


def test_a_file_may_turn_equalities_off(tmp_path: Path) -> None:
    off = '<option><flag equality="disable"/></option>'
    s = load_skeleton(write(tmp_path, TWO, off + equality('joint2="x"')))
    assert s.loops == s.notes == ()
    assert all(joint.mimic is None for joint in s.joints)


def test_the_loops_of_a_real_gripper_close(shared_data: Path) -> None:
    path = shared_data / "robot" / "xarm7_hand_nomesh.xml"
    s = load_skeleton(path)
    sides = ("right", "left")
    assert [tie.names for tie in s.loops] == [(f"{side}_finger", f"{side}_inner_knuckle") for side in sides]
    assert residual(path, s) < 1e-9
    moving = sy.IK(s, sy.PositionGoal("left_finger"), root="free").skeleton
    for again in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), s.with_root("x,y"), moving):
        assert [tie.names for tie in again.loops] == [tie.names for tie in s.loops]
    sy.formats.write_skeleton(s, "hand.toml")
    assert np.array_equal(load_skeleton("hand.toml").random_pose(1).q, s.random_pose(1).q)


def test_many_notes_make_one_short_warning(tmp_path: Path) -> None:
    body = '<body name="d"/><body name="e"/>'
    path = write(tmp_path, LIMITED + body, "<equality>" + '<weld body1="d" body2="e"/>' * 50 + "</equality>")
    with pytest.warns(UserWarning, match=r"And 44 more, see skeleton\.notes\.$"):
        assert len(load_skeleton(path).notes) == 50


TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.mark.parametrize("strip", ["false", "true"])
def test_meshes_and_includes_beside_the_model(tmp_path: Path, strip: str) -> None:
    (tmp_path / "assets" / "deep").mkdir(parents=True)
    (tmp_path / "assets" / ("t.obj" if strip == "true" else "deep/t.obj")).write_text(TETRAHEDRON)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xml").write_text('<mujocoinclude><include file="hand.xml"/></mujocoinclude>')
    (tmp_path / "parts" / "hand.xml").write_text(
        '<mujoco><worldbody><body name="c"><geom type="mesh" mesh="t"/></body></worldbody></mujoco>'
    )
    extra = f"""<compiler meshdir="assets" strippath="{strip}"/><include file="parts/arm.xml"/>
    <asset><mesh name="t" file="deep/t.obj"/></asset>"""
    assert load_skeleton(write(tmp_path, "", extra)).joint_names == ("world", "c")


def asset(text: str) -> str:
    return f"<asset>{text}</asset>"


SHAPES = (
    '<mesh name="t" file="{}.obj"/>',
    '<mesh name="t" file="{}.STL" scale="0.001 0.001 0.001"/>',
    '<mesh name="t" file="{0}.msh"/><mesh name="u" file="deep/{0}.MSH"/>',
)


@pytest.mark.parametrize("mesh", SHAPES)
@pytest.mark.parametrize("place", ["none", "deep/none", "../secret", "/nowhere/at all", "empty"])
def test_meshes_that_cannot_be_opened_do_not_matter(tmp_path: Path, mesh: str, place: str) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    for ending in ("obj", "STL", "msh"):
        (tmp_path / f"secret.{ending}").write_text(TETRAHEDRON)
        (folder / f"empty.{ending}").write_text("version https://git-lfs.github.com/spec/v1\n")
    body = f"""<body name="a"><joint name="j"/>{BALL}<geom type="mesh" mesh="t" mass="0"/>
      <body name="b" pos="1 0 0"><joint name="k"/>{BALL}<geom type="mesh" mesh="t"/>
      <body name="c" pos="1 0 0"><joint name="l"/><inertial pos="0 0 1" mass="3" diaginertia="1 1 1"/>
      <geom type="box" mesh="t"/></body></body></body>"""
    s = told(write(folder, body, asset(mesh.format(place))))
    assert len(s.notes) == 3
    assert s.notes[0].endswith("Kinematics does not need them.")
    assert s.notes[1] == "The masses of these bodies depend on such shapes and were set to 0: 'b'."
    assert s.notes[2] == "Shapes were not kept (mesh files are missing) of bodies 'a', 'b', 'c'."
    assert [joint.mass for joint in s.joints] == pytest.approx([0.0, 2.0, 0.0, 3.0])
    assert np.allclose([joint.com for joint in s.joints], [[0, 0, 0], [0.1, 0.2, 0.3], [0, 0, 0], [0, 0, 1]])
    assert s.rest_pose().position("c").tolist() == [2.0, 0.0, 0.0]


def test_pictures_fields_and_skins_that_cannot_be_opened_do_not_matter(tmp_path: Path) -> None:
    extra = asset(
        """<texture name="a" type="2d" file="../a.png"/><texture name="b" type="cube" fileup="b.png" filedown="a.png"/>
        <texture name="c" type="cube" file="c.png" gridsize="3 4" gridlayout=".U..LFRB.D.."/>
        <texture name="d" type="skybox" file="/d.png"/><material name="m" texture="a"/>
        <hfield name="h" file="h.png" size="1 1 1 1"/><skin name="s" file="s.skn"/>"""
    )
    s = told(write(tmp_path, f'<geom type="hfield" hfield="h"/><body name="x"><joint name="j"/>{BALL}</body>', extra))
    assert s.notes == (
        "Files of shapes are missing or outside the model's folder: "
        + ", ".join(repr(name) for name in ("s.skn", "h.png", "d.png", "c.png"))
        + " and 2 more. Kinematics does not need them.",
        "Shapes were not kept (height fields) of bodies 'world'.",
    )
    assert s.joint("j").mass == pytest.approx(2.0)


def test_shapes_that_are_missing_are_not_shown(tmp_path: Path) -> None:
    from synovia.surface import surface_of

    (tmp_path / "there.obj").write_text(TETRAHEDRON)
    body = '<body name="a"><joint/><geom type="mesh" mesh="there"/><geom type="mesh" mesh="none"/></body>'
    path = write(tmp_path, body, asset('<mesh file="there.obj"/><mesh file="none.obj"/>'))
    (part,) = surface_of(path, told(path)).parts
    assert len(part.faces) == 4


def test_an_include_may_lie_in_a_neighbouring_folder(tmp_path: Path) -> None:
    for name in ("robot", "parts"):
        (tmp_path / name).mkdir()
    (tmp_path / "parts" / "arm.xml").write_text(
        f'<mujoco><worldbody><body name="arm">{BALL}</body></worldbody></mujoco>'
    )
    path = write(tmp_path / "robot", "", '<include file="../parts/arm.xml"/>')
    assert load_skeleton(path).joint_names == ("world", "arm")
    (tmp_path / "parts" / "arm.xml").write_text('<!DOCTYPE a SYSTEM "file:///etc/passwd"><mujoco/>')
    with pytest.raises(FormatError, match="document type"):
        load_skeleton(path)


@pytest.mark.parametrize("size", ["nstack='300000'", "njmax='20000' nconmax='20000'", "memory='1G' nuserdata='10'"])
def test_the_memory_that_old_files_ask_for(tmp_path: Path, size: str) -> None:
    assert len(load_skeleton(write(tmp_path, TWO, f"<size {size}/>"))) == 3


@pytest.mark.parametrize(
    ("body", "extra", "says"),
    [
        ("", asset('<mesh name="t" file="none.dae"/>'), ":2: MuJoCo cannot compile it"),
        ("", asset('<mesh name="t" file="/etc/passwd"/>'), ":2: MuJoCo cannot compile it"),
        ("", '<include file="../other.xml"/>', ":2: file of <include> does not exist"),
        ("", '<include file="/etc/passwd"/>', ":2: file of <include> is outside"),
        ("", '<include file="robot.xml"/>', "include"),
        ("", asset('<texture name="t" type="2d" builtin="flat" width="99999" height="99999"/>'), "too many cells"),
        ("", asset('<texture name="t" builtin="flat" width="2000" height="2000"/>'), "too many cells"),
        ("", asset('<hfield name="t" nrow="99999" ncol="99999" size="1 1 1 1"/>'), "too many cells"),
        ("", asset('<mesh name="t" builtin="supersphere" params="5000 1 1"/>'), "too many vertices"),
        ("", asset(9 * '<mesh builtin="cone" params="99 .5"/>'), "too many vertices"),
        ("", '<size nuser_body="100000000"/>', "nuser_body of <size> is too large"),
        ("", '<size nuser_body="500"/>', "nuser_body of <size> is too large"),
        ("", '<size nuserdata="50000000"/>', "nuserdata of <size> is too large"),
        ("", '<sensor><user dim="2000000000"/></sensor>', "dim of <user> is too large"),
        ("", '<custom><numeric name="n" size="999999"/></custom>', "size of <numeric> is too large"),
        ("", f'<compiler><lengthrange inttotal="1e9"/></compiler>{MUSCLE}', "too many steps"),
        ("", f'{MUSCLE}<compiler><lengthrange timestep="1e-9"/></compiler>', "too many steps"),
        (f'<replicate count="100000"><body>{BALL}</body></replicate>', "", ":4: <body> creates too many bodies"),
        (400 * f'<replicate count="2"><body>{BALL}</body></replicate>', "", "too many <replicate>s for its size"),
        (f'<replicate count="1e9x"><body>{BALL}</body></replicate>', "", "MuJoCo cannot compile it"),
        ('<replicate count="90"><replicate count="90"><body/></replicate></replicate>', "", "creates too many bodies"),
        (f'<replicate count="2000"><body>{40 * BALL}</body></replicate>', "", "creates too many elements"),
        ('<flexcomp name="f" type="grid" count="50 50 1" spacing="1 1 1"/>', "", "creates too many points"),
        ("<body>" * 6000 + "</body>" * 6000, "", "nested too deep"),
        ("<body>" * 700 + "</body>" * 700, "", "MuJoCo cannot compile it"),
        ("<body/>" * 6000, "", "too many <body>"),
        ('<body pos="nan 0 0"/>', "", "a number that is NaN"),
        ('<body pos="1e300 0 0"/>', "", "pos of body 'body1' cannot be used"),
        ('<body pos="1 0"/>', "", ":4: MuJoCo cannot compile it"),
        (f'<body><joint axis="0 0 0"/>{BALL}</body>', "", "axis too small"),
        (f'<body><joint name="j" limited="true" range="1 -1"/>{BALL}</body>', "", "range"),
        (f'<body><joint name="j"/>{BALL}</body><body><joint name="j"/>{BALL}</body>', "", "repeated name 'j'"),
        (f'<body><joint name="j" type="saddle"/>{BALL}</body>', "", ":4: MuJoCo cannot compile it"),
        (f"<body>{BALL}<body><freejoint/>{BALL}</body></body>", "", "MuJoCo cannot compile it"),
        ("<body><joint/></body>", "", "mass and inertia"),
        ("</worldbody>", "", ":5: is not well-formed XML"),
        (TWO, equality('joint2="y"'), "robot.xml"),
    ],
)
def test_broken_and_hostile_files(tmp_path: Path, elsewhere: Path, body: str, extra: str, says: str) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "secret.obj").write_text(TETRAHEDRON)
    path = write(folder, body, extra)
    start = time.process_time()
    with pytest.raises(FormatError) as caught:
        load_skeleton(path)
    assert time.process_time() - start < HANG  # the first of them also imports MuJoCo
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(elsewhere.iterdir()), "MuJoCo left a log file"
    assert [entry.name for entry in folder.iterdir()] == ["robot.xml"]


COPIES = '<replicate count="{}"><body>{}</body></replicate>'


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (COPIES.format(4, BALL) + COPIES.format(5, BALL), 9),
        (COPIES.format(3, BALL + COPIES.format(4, BALL)), 3 * (1 + 4)),
    ],
)
def test_copies_below_the_limit_are_made(tmp_path: Path, body: str, count: int) -> None:
    assert len(load_skeleton(write(tmp_path, body))) == 1 + count  # the world


def test_copies_are_counted_with_all_others(tmp_path: Path) -> None:
    """Beside each other they add up, within each other they multiply, and a grid has the product of its sides."""
    half = MOST_BODIES // 2 + 1
    side = math.ceil(MOST_POINTS ** (1 / 3)) + 1
    grid = f'<body><composite type="particle" count="{side} {side} {side}" spacing="1">{BALL}</composite></body>'
    thin = COPIES.format(2, COPIES.format(half, BALL))
    for body, what, most in (
        (COPIES.format(half, BALL) * 2, "bodies", MOST_BODIES),
        (thin, "bodies", MOST_BODIES),
        (grid, "points", MOST_POINTS),
    ):
        with pytest.raises(FormatError, match=f"creates too many {what}: .* at most {most} in total"):
            load_skeleton(write(tmp_path, body))


def test_document_types_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text('<!DOCTYPE mujoco [<!ENTITY a SYSTEM "file:///etc/passwd">]><mujoco model="&a;"/>')
    with pytest.raises(FormatError, match="document type"):
        load_skeleton(path)


def test_truncated_at_every_line(tmp_path: Path) -> None:
    lines = write(tmp_path, TWO, equality('joint2="x"')).read_text().splitlines(keepends=True)
    for n in range(1, len(lines)):
        path = tmp_path / "cut.xml"
        path.write_text("".join(lines[:n]))
        with pytest.raises(FormatError, match=r"cut\.xml:\d+: is not well-formed XML"):
            load_skeleton(path)


@pytest.mark.parametrize("name", ["robot.mjcf", "robot.txt"])
def test_content_decides_whatever_the_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, TWO, name=name)
    path.write_text("<!-- <robot> -->\n" + path.read_text(), encoding="utf-8-sig")
    assert len(load_skeleton(path)) == 3


def test_xml_of_no_known_kind(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text("<sdf/>")
    with pytest.raises(FormatError, match="another kind"):
        load_skeleton(path)


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[mujoco\]") as caught:
        load_skeleton(write(tmp_path, TWO))
    assert isinstance(caught.value, SynoviaError)


@pytest.mark.parametrize(
    ("place", "bone"), [("0.1 0.2 0.3", (0.1, 0.2, 0.3)), ("0.5 0 0", (0.5, 0, 0)), ("0 0 0", (0, 0, 1))]
)
def test_a_limited_ball_twists_about_the_way_to_its_mass(tmp_path: Path, place: str, bone: tuple[float, ...]) -> None:
    """About its z axis where the mass is in the joint."""
    geom = f'<geom type="sphere" size="0.1" mass="2" pos="{place}"/>'
    skeleton = told(write(tmp_path, f'<body name="b"><joint name="j" type="ball" range="0 90"/>{geom}</body>'))
    limit = skeleton.joints[skeleton.index("j")].limit
    assert isinstance(limit, SwingTwist)
    axis = np.asarray(limit.frame)[:, 2]
    np.testing.assert_allclose(axis, np.asarray(bone) / np.linalg.norm(bone), atol=1e-9)


def test_points_of_composites_are_counted_by_their_numbers(tmp_path: Path) -> None:
    """As many as are allowed along one line, and one more."""

    def counted(count: int) -> None:
        root = parse(f'<mujoco><composite count="{count} 1 1"/></mujoco>'.encode(), "a.xml", root="mujoco", most={})
        Budget().count(root)

    counted(int(MOST_POINTS))
    with pytest.raises(FormatError, match="too many points"):
        counted(int(MOST_POINTS) + 1)


def test_what_mujoco_reads_without_a_space_is_read(tmp_path):
    joint = '<joint name="x"axis="0 1 0"/><geom size="0.1"/>'
    text = f'<mujoco><worldbody><body name="a"pos="0 0 1">{joint}</body></worldbody></mujoco>'
    (tmp_path / "a.xml").write_text(text)
    mujoco = pytest.importorskip("mujoco")
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "a.xml")).nbody == 2
    with pytest.warns(UserWarning, match="Attributes without a space between them"):
        body = load_skeleton(tmp_path / "a.xml")
    np.testing.assert_allclose(body.rest_pose().position("x"), (0, 0, 1))


@pytest.mark.parametrize(
    "actuator",
    ['<motor joint="x"/>', '<muscle joint="x" lengthrange="0.1 0.2"/>', '<general joint="x" lengthrange="0 1"/>'],
)
def test_length_ranges_that_nothing_has_to_find_are_not_counted(tmp_path, actuator):
    extra = f'<compiler><lengthrange inttotal="500"/></compiler><actuator>{actuator}</actuator>'
    assert len(load_skeleton(write(tmp_path, TWO, extra))) == 3
