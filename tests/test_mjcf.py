"""MJCF: what each joint type becomes, and what a broken or hostile file is told."""

import math
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from synovia.errors import FormatError, MissingExtraError, SynoviaError, UnsupportedError
from synovia.io.load import load_skeleton
from synovia.io.mjcf.files import MOST_COPIES
from synovia.limits import Interval, SwingTwist
from synovia.skeleton import Kind

HANG = 10.0  # seconds: no measurement, only far from hanging, also on a busy machine

pytest.importorskip("mujoco")

BALL = '<geom type="sphere" size="0.1" mass="2" pos="0.1 0.2 0.3"/>'


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
    s = load_skeleton(write(tmp_path, body))
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
    s = load_skeleton(write(tmp_path, TWO, equality('polycoef="0.25 1 0 0 0"')))
    assert s.joint("y").limit == Interval(0.75, 0.75)
    assert s.rest_pose()["y"] == 0.75


def test_an_inactive_coupling_is_none(tmp_path: Path) -> None:
    s = load_skeleton(write(tmp_path, TWO, equality('joint2="x" polycoef="0 1 1 0 0" active="false"')))
    assert s.joint("y").mimic is None


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        (equality('joint2="x" polycoef="0 1 1 0 0"'), "joint 'y' follows 'x' by a polynomial"),
        (equality('joint2="x"') + equality('joint2="x"'), "joint 'y' is coupled twice"),
    ],
)
def test_couplings_that_cannot_be_kept(tmp_path: Path, extra: str, says: str) -> None:
    with pytest.raises(UnsupportedError, match=says):
        load_skeleton(write(tmp_path, TWO, extra))


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


@pytest.mark.parametrize(
    ("body", "extra", "says"),
    [
        ("", asset('<mesh name="t" file="none.obj"/>'), ":2: file of <mesh> does not exist, got 'none.obj'"),
        ("", asset('<mesh name="t" file="../secret.obj"/>'), ":2: file of <mesh> is outside the model's folder"),
        ("", asset('<mesh name="t" file="/etc/passwd"/>'), ":2: file of <mesh> is outside"),
        ("", asset('<texture name="t" type="cube" fileup="/etc/passwd"/>'), ":2: file of <texture> is outside"),
        ("", '<compiler meshdir=".."/>' + asset('<mesh name="t" file="secret.obj"/>'), "is outside the model's folder"),
        ("", '<include file="../other.xml"/>', ":2: file of <include> is outside"),
        ("", '<include file="robot.xml"/>', "include"),
        ("", asset('<texture name="t" type="2d" builtin="flat" width="99999" height="99999"/>'), "is too large"),
        ("", asset('<hfield name="t" nrow="99999" ncol="99999" size="1 1 1 1"/>'), "is too large"),
        ("", '<size nuser_body="100000000"/>', "nuser_body of <size> is too large"),
        (f'<replicate count="100000"><body>{BALL}</body></replicate>', "", ":4: <replicate> makes too many copies"),
        ('<replicate count="90"><replicate count="90"><body/></replicate></replicate>', "", "makes too many copies"),
        ("<body>" * 6000 + "</body>" * 6000, "", "nested too deep"),
        ("<body>" * 700 + "</body>" * 700, "", "MuJoCo cannot compile it"),
        ("<body/>" * 6000, "", "too many <body>"),
        ('<body pos="nan 0 0"/>', "", "a number that is NaN"),
        ('<body pos="1e300 0 0"/>', "", "pos of body 'body1' cannot be used"),
        ('<body pos="1 0"/>', "", ":4: MuJoCo cannot compile it"),
        (f'<body><joint axis="0 0 0"/>{BALL}</body>', "", "axis too small"),
        (f'<body><joint name="j" range="1 -1"/>{BALL}</body>', "", "range"),
        (f'<body><joint name="j" limited="false" range="1 -1"/>{BALL}</body>', "", "range of joint 'j' is reversed"),
        (f'<body><joint name="j"/>{BALL}</body><body><joint name="j"/>{BALL}</body>', "", "repeated name 'j'"),
        (f'<body><joint name="j" type="saddle"/>{BALL}</body>', "", ":4: MuJoCo cannot compile it"),
        (f"<body>{BALL}<body><freejoint/>{BALL}</body></body>", "", "MuJoCo cannot compile it"),
        ("<body><joint/></body>", "", "mass and inertia"),
        ("</worldbody>", "", ":5: is no well-formed XML"),
        (TWO, equality('joint2="y"'), "robot.xml"),
        (TWO, equality('joint2="x"') + '<equality><joint joint1="x" joint2="y"/></equality>', "follows itself"),
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
    half = MOST_COPIES // 2 + 1
    side = math.ceil(MOST_COPIES ** (1 / 3)) + 1
    grid = f'<composite type="particle" count="{side} {side} {side}" spacing="1"><geom size=".1"/></composite>'
    thin = COPIES.format(2, COPIES.format(half, BALL))
    for body in (COPIES.format(half, BALL) * 2, thin, f"<body>{grid}</body>"):
        with pytest.raises(FormatError, match=f"makes too many copies, got .* at most {MOST_COPIES} in all"):
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
        with pytest.raises(FormatError, match=r"cut\.xml:\d+: is no well-formed XML"):
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
    with pytest.raises(MissingExtraError, match=r'pip install "synovia\[mujoco\]"') as caught:
        load_skeleton(write(tmp_path, TWO))
    assert isinstance(caught.value, SynoviaError)
