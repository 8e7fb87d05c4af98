"""URDF: what each joint type becomes, and what a broken file is told."""

import math
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import synovia.io.urdf as urdf
from synovia.errors import FileError, FormatError, UnknownNameError
from synovia.io.load import companions_of, load_skeleton
from synovia.io.urdf import xacro
from synovia.model import MAX_JOINTS, Kind, Pose, Skeleton
from synovia.model.limits import Interval

HANG = 10.0  # seconds: no measurement, only far from hanging, also on a busy machine

JOINT = '<joint name="{name}" type="{type}"><parent link="{a}"/><child link="{b}"/>{more}</joint>'


def links(*names: str) -> str:
    return "".join(f'<link name="{name}"/>' for name in names)


def joint(name: str, a: str, b: str, kind: str = "fixed", more: str = "") -> str:
    return JOINT.format(name=name, a=a, b=b, type=kind, more=more)


LIMIT = '<limit lower="-1" upper="2" effort="1" velocity="1"/>'

ALL_TYPES = f"""<?xml version="1.0"?>
<!-- every type of joint -->
<robot name="all" xmlns:xacro="http://www.ros.org/wiki/xacro">
  {links("a", "b", "c", "d", "e", "f", "h")}
  <link name="g"><inertial><origin xyz="0.1 0.2 0.3" rpy="1 0 0"/><mass value="2.5"/></inertial>
    <visual><geometry><mesh filename="../../../../etc/passwd"/></geometry></visual></link>
  {joint("j_cont", "a", "b", "continuous", '<origin xyz="1 2 3" rpy="0.1 -0.7 2"/><axis xyz="0 3 4"/><limit/>')}
  {joint("j_rev", "b", "c", "revolute", '<origin rpy="3 1.5 -2"/>' + LIMIT + "<safety_controller/>")}
  {joint("j_pri", "c", "d", "prismatic", '<axis xyz="0 0 -1"/>' + LIMIT)}
  {joint("j_fix", "d", "e", "fixed", '<origin xyz="0 0 0.5"/>')}
  {joint("j_float", "e", "f", "floating", '<origin xyz="0 1 0" rpy="0 0 1"/>')}
  {joint("j_plan", "f", "g", "planar", '<origin xyz="0 1 0" rpy="1 0 1"/><axis xyz="0 0 1"/>')}
  {joint("j_mim", "b", "h", "revolute", LIMIT.replace("2", "9") + '<mimic joint="j_rev" multiplier="-2" />')}
  <transmission name="t"><joint name="j_rev"><hardwareInterface/></joint></transmission>
  <gazebo reference="a"/><material name="m"/>
</robot>
"""


def write(folder: Path, text: str | bytes, name: str = "robot.urdf") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_every_joint_type(tmp_path: Path) -> None:
    s = load_skeleton(write(tmp_path, ALL_TYPES))
    kinds = {name: s.joint(name).kind for name in s.joint_names}
    assert kinds == {
        "a": Kind.FIXED,
        "j_cont": Kind.HINGE,
        "j_rev": Kind.HINGE,
        "j_pri": Kind.SLIDE,
        "j_fix": Kind.FIXED,
        "j_float": Kind.FREE,
        "j_plan_x": Kind.SLIDE,
        "j_plan_y": Kind.SLIDE,
        "j_plan": Kind.HINGE,
        "j_mim": Kind.HINGE,
    }
    assert (s.meters_per_unit, s.up, s.forward, s.name) == (1.0, "z", "x", "robot.urdf")
    for name, body in [("j_cont", "b"), ("j_plan", "g"), ("a", "a"), ("j_mim", "h")]:
        assert s.index(name) == s.index(body)
    assert s.joint("j_rev").limit == Interval(-1.0, 2.0)
    assert s.joint("j_cont").limit is None
    assert np.allclose(s.joint("j_rev").axis, [1, 0, 0])  # the format's default
    assert np.allclose(s.joint("j_cont").axis, [0, 0.6, 0.8])
    assert s.joint("g").mass == 2.5
    assert np.allclose(s.joint("g").com, [0.1, 0.2, 0.3])
    assert s.joint("b").mass == 0.0


def test_mimic_is_kept_in_q_and_chains_of_mimics_resolve(tmp_path: Path) -> None:
    more = LIMIT.replace("-1", "-9").replace("2", "9")
    text = f"""<robot name="r">{links("a", "b", "c", "d")}
    {joint("j1", "a", "b", "revolute", more + '<mimic joint="b2" multiplier="2" offset="0.25"/>')}
    {joint("b2", "b", "c", "revolute", more + '<mimic joint="j3" multiplier="-1"/>')}
    {joint("j3", "c", "d", "continuous")}</robot>"""
    s = load_skeleton(write(tmp_path, text))
    pose = s.rest_pose().with_values({"j3": 0.5})
    assert pose["b2"] == pytest.approx(-0.5)
    assert pose["j1"] == pytest.approx(-0.75)


def test_a_follower_leaves_its_leader_the_whole_range_of_its_limits(tmp_path: Path) -> None:
    text = f"""<robot name="r">{links("a", "b", "c")}
    {joint("j1", "a", "b", "revolute", LIMIT)}
    {joint("j2", "b", "c", "revolute", LIMIT + '<mimic joint="j1" multiplier="-3" offset="50"/>')}</robot>"""
    s = load_skeleton(write(tmp_path, text))
    assert s.limits[0].tolist() == [-1.0, -math.inf]
    assert s.limits[1].tolist() == [2.0, math.inf]
    assert s.joint("j2").limit == Interval(-1.0, 2.0)
    assert s.value_range("j2") == (44.0, 53.0)


def test_loops_of_extensions_are_told(tmp_path: Path) -> None:
    gazebo = '<gazebo><joint name="pin" type="revolute"><parent>b</parent><child>c</child></joint></gazebo>'
    text = f"""<robot name="r">{links("a", "b", "c")}{joint("j", "a", "b", "continuous")}
    {joint("k", "a", "c", "continuous")}{gazebo}
    <gazebo reference="j"><joint/></gazebo><loop_joint name="bar" type="fixed"/></robot>"""
    with pytest.warns(UserWarning, match="'pin' was not kept.*'bar' was not kept"):
        s = load_skeleton(write(tmp_path, text))
    assert s.notes == (
        "The constraint <joint> 'pin' was not kept: loops stay open, so the joints in them move freely.",
        "The constraint <loop_joint> 'bar' was not kept: loops stay open, so the joints in them move freely.",
    )


def test_a_joint_whose_name_another_joints_link_has(tmp_path: Path) -> None:
    text = f"""<robot name="r">{links("a", "gripper", "jaw")}
    {joint("roll", "a", "gripper", "continuous", '<origin xyz="1 0 0"/>')}
    {joint("gripper", "gripper", "jaw", "continuous", '<origin xyz="0 2 0"/>')}</robot>"""
    s = load_skeleton(write(tmp_path, text))
    assert (s.index("joint:gripper"), s.index("link:gripper"), s.index("jaw"), s.index("roll")) == (2, 1, 2, 1)
    assert s.rest_pose().position("joint:gripper").tolist() == [1.0, 2.0, 0.0]
    assert s.rest_pose().position("link:gripper").tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(UnknownNameError, match=r"joint:gripper, link:gripper \(of joint 'roll'\)"):
        s.rest_pose().position("gripper")
    assert Pose(s, {"gripper": 0.3})["gripper"] == 0.3 == Pose(s, {"gripper": 0.3})["joint:gripper"]


def test_a_leader_may_share_its_name_with_a_link(tmp_path: Path) -> None:
    text = f"""<robot name="r">{links("a", "arm", "c")}
    {joint("j", "a", "arm", "continuous", '<mimic joint="arm"/>')}{joint("arm", "arm", "c", "continuous")}</robot>"""
    s = load_skeleton(write(tmp_path, text))
    q = s.follow(np.array([0.0, 0.7]))
    assert Pose(s, q).q.tolist() == [0.7, 0.7]


@pytest.mark.parametrize("axis", [(0, 0, 1), (1, 0, 0), (0, -1, 0), (0.48, 0.6, 0.64)])
def test_planar_moves_across_its_axis_and_turns_about_it(tmp_path: Path, axis: tuple[float, float, float]) -> None:
    more = '<axis xyz="{} {} {}"/>'.format(*axis)
    s = load_skeleton(
        write(tmp_path, f'<robot name="r">{links("a", "b")}{joint("j", "a", "b", "planar", more)}</robot>')
    )
    pose = s.rest_pose().with_values({"j_x": 0.3, "j_y": -0.4, "j": 0.9})
    assert pose.position("b") @ np.array(axis) == pytest.approx(0.0, abs=1e-15)
    assert np.linalg.norm(pose.position("b")) == pytest.approx(0.5)
    assert np.allclose(pose.rotation("b").as_rotvec(), 0.9 * np.array(axis))


def test_rows_follow_the_file_order_whatever_the_order_of_definition(tmp_path: Path) -> None:
    text = f"""<robot name="r">{joint("j2", "b", "c")}{joint("j3", "a", "d")}{joint("j1", "a", "b")}
    {links("d", "c", "b", "a")}</robot>"""
    assert load_skeleton(write(tmp_path, text)).joint_names == ("a", "j3", "j1", "j2")


def test_limits_may_be_infinite_or_left_out_as_the_format_says(tmp_path: Path) -> None:
    text = f"""<robot name="r">{links("a", "b", "c")}
    {joint("j1", "a", "b", "prismatic", '<limit lower="-inf" upper="1e308"/>')}
    {joint("j2", "b", "c", "revolute", '<limit upper="0.5" effort="1" velocity="1"/>')}</robot>"""
    s = load_skeleton(write(tmp_path, text))
    assert s.joint("j1").limit == Interval(-math.inf, 1e308)
    assert s.joint("j2").limit == Interval(0.0, 0.5)


GOOD = f"""<robot name="r">
{links("a", "b", "c")}
{joint("j1", "a", "b", "revolute", LIMIT)}
{joint("j2", "b", "c", "prismatic", LIMIT + '<origin xyz="0 0 1" rpy="0 0 0"/><axis xyz="0 1 0"/>')}
</robot>
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            'parent link="b"/><child link="c"',
            'parent link="a"/><child link="b"',
            ":4: link 'b' has two parents: 'a' by",
        ),
        ('<link name="c"/>', joint("j0", "b", "a") + '<link name="c"/><!--', "not well-formed XML"),
        (
            'parent link="b"/><child link="c"',
            'parent link="c"/><child link="c"',
            ":4: joint 'j2' joins link 'c' to itself",
        ),
        ('child link="c"', 'child link="cc"', ":4: child link 'cc' of joint 'j2' does not exist. Did you mean 'c'?"),
        ('parent link="b"', 'parent link="elbow"', ":4: parent link 'elbow' of joint 'j2' does not exist"),
        ('<child link="c"/>', "", ":4: joint 'j2' has no <child>"),
        ('<child link="c"/>', "<child/>", ":4: <child> has no link"),
        ('<child link="c"/>', '<child link="c"/><child link="a"/>', ":4: second <child> in one <joint>"),
        ('name="j2"', 'name="j1"', ":4: joint 'j1' is defined twice. The first is on line 3"),
        ('<link name="c"/>', '<link name="c"/><link name="a"/>', ":2: link 'a' is defined twice"),
        ('<link name="c"/>', '<link name="c"/><link name="z"/>', ":2: there are 2 root links: expected one"),
        ('xyz="0 0 1"', 'xyz="nan 0 1"', ":4: xyz of <origin> cannot be used: expected finite numbers"),
        ('xyz="0 0 1"', 'xyz="0 inf 1"', ":4: xyz of <origin> cannot be used"),
        ('xyz="0 0 1"', 'xyz="0 1e300 1"', ":4: xyz of <origin> cannot be used"),
        ('xyz="0 0 1"', 'xyz="0 9999999999999999999999999999 1"', ":4: xyz of <origin> cannot be used"),
        ('xyz="0 0 1"', 'xyz="0 1"', ":4: xyz of <origin> has 2 numbers: expected 3 numbers"),
        ('xyz="0 0 1"', 'xyz="0, 0, 1"', ":4: xyz of <origin> is not numeric"),
        ('xyz="0 0 1"', 'xyz="0 0 1_0"', ":4: xyz of <origin> is not numeric"),
        ('xyz="0 0 1"', 'xyz="0 0 ${z}"', "run `xacro"),
        ('rpy="0 0 0"', 'rpy="0 0"', ":4: rpy of <origin> has 2 numbers"),
        ('rpy="0 0 0"', 'rpy=""', ":4: <origin> has no rpy"),
        ('axis xyz="0 1 0"', 'axis xyz="0 0 0"', ":4: axis of joint 'j2' has no direction: expected three numbers"),
        ('lower="-1"', 'lower="nan"', ":3: lower of <limit> cannot be used"),
        ('lower="-1"', 'lower="inf"', ":3: limits of joint 'j1' allow no value"),
        (LIMIT, "", ":3: revolute joint 'j1' has no <limit>"),
        ('type="revolute"', 'type="Revolute"', ":3: joint 'j1' has an unknown type: expected one of fixed"),
        ('type="revolute"', "", ":3: <joint> has no type"),
        ('name="j2"', "", ":4: <joint> has no name"),
        ('<link name="c"/>', "<link/>", ":2: <link> has no name"),
        (LIMIT, LIMIT + "<mimic/>", "<mimic> has no joint"),
        (LIMIT, LIMIT + '<mimic joint="j2" multiplier="x"/>', "multiplier of <mimic> is not numeric"),
        (
            '<link name="c"/>',
            '<link name="c"><inertial><mass value="-1"/></inertial></link>',
            "mass is negative: expected kilograms",
        ),
        ('<link name="c"/>', '<link name="c"><inertial><mass value="1e400"/></inertial></link>', "cannot be used"),
        (LIMIT, LIMIT + "<xacro:place/>", ":3: holds an unexpanded macro <xacro:place>"),
        ('<link name="c"/>', "<xacro:hand/>", ":2: holds an unexpanded macro <xacro:hand>"),
        ("<robot", '<!DOCTYPE robot SYSTEM "file:///etc/passwd"><robot', ":1: declares a document type (robot)"),
        ("<robot", "<sdf/><robot", ":1: is XML of another kind (<sdf>)"),
        ("</robot>", "</rob>", ":5: is not well-formed XML: mismatched tag"),
        ("</robot>", "", "no element found"),
        ('name="r"', 'name="r" name="s"', ":1: is not well-formed XML: duplicate attribute"),
        ('name="r"', 'name="&x;"', ":1: is not well-formed XML"),
    ],
)
def test_broken_files_are_told_what_and_where(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(FormatError) as caught:
        load_skeleton(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def told(path: Path) -> Skeleton:
    """Return the skeleton of a file that cannot be kept as it is, and hold the warning to its notes."""
    with pytest.warns(UserWarning, match=re.escape(str(path))) as caught:
        s = load_skeleton(path)
    assert len(caught) == 1
    assert all(note in str(caught[0].message) for note in s.notes)
    return s


@pytest.mark.parametrize(
    ("a", "b", "leader"),
    [
        ("floating", "continuous", "j2"),
        ("planar", "continuous", "j2"),
        ("continuous", "fixed", "j2"),
        ("continuous", "planar", "j2"),
        ("continuous", "continuous", "j3"),
        ("continuous", "continuous", "j1"),
    ],
)
def test_a_joint_that_has_no_leader_moves_freely(tmp_path: Path, a: str, b: str, leader: str) -> None:
    text = f"""<robot name="r">{links("a", "b", "c")}
    {joint("j1", "a", "b", a, f'<mimic joint="{leader}"/>')}{joint("j2", "b", "c", b)}</robot>"""
    s = told(write(tmp_path, text))
    assert s.joint("j1").mimic is None
    assert s.notes[0].startswith(f"The coupling of joint 'j1' to '{leader}' was not kept, so it moves freely: ")
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromXML(text)
    assert s.nv == model.nv


def test_couplings_in_a_circle_lose_one_and_endless_ones_are_refused(tmp_path: Path) -> None:
    text = f"""<robot name="r">{links("a", "b", "c")}
    {joint("j1", "a", "b", "continuous", '<mimic joint="j2" multiplier="3"/>')}
    {joint("j2", "b", "c", "continuous", '<mimic joint="j1"/>')}</robot>"""
    s = told(write(tmp_path, text))
    assert s.notes == ("The coupling of joint 'j2' to 'j1' was not kept, so it moves freely: it would follow itself.",)
    assert s.rest_pose().with_values({"j2": 0.2})["j1"] == pytest.approx(0.6)
    n = 300
    body = links(*(f"l{i}" for i in range(n + 1)))
    for i in range(n):
        body += joint(f"j{i}", f"l{i}", f"l{i + 1}", "continuous", f'<mimic joint="j{i + 1}"/>' if i < n - 1 else "")
    with pytest.raises(FormatError, match="a chain of more than"):
        load_skeleton(write(tmp_path, f'<robot name="r">{body}</robot>'))


@pytest.mark.parametrize(("lower", "upper"), [(2.775, -2.775), (1.0, 0.0), (3.0, 2.0)])
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_reversed_limits_are_none(tmp_path: Path, lower: float, upper: float, kind: str) -> None:
    text = GOOD.replace('"revolute"', f'"{kind}"').replace(
        'lower="-1" upper="2"', f'lower="{lower}" upper="{upper}"', 1
    )
    s = told(write(tmp_path, text))
    assert s.joint("j1").limit is None
    assert s.joint("j2").limit == Interval(-1.0, 2.0)
    assert s.notes == (f"Reversed limits were ignored: 'j1' ({lower:.4g} to {upper:.4g}).",)


@pytest.mark.parametrize("before", ["\n", " \t\r\n \n", "\ufeff", "\ufeff\n", "\n\ufeff"])
def test_a_declaration_may_follow_empty_lines_and_marks(tmp_path: Path, before: str) -> None:
    text = before + '<?xml version="1.0" encoding="utf-8"?>\n' + GOOD
    assert len(load_skeleton(write(tmp_path, text))) == 3
    lines = before.count("\n") + 5
    with pytest.raises(FormatError, match=f":{lines}: parent link 'x' of joint 'j2' does not exist"):
        load_skeleton(write(tmp_path, text.replace('parent link="b"', 'parent link="x"')))
    with pytest.raises(FormatError, match=f":{lines}: is not well-formed XML"):
        load_skeleton(write(tmp_path, text.replace('<axis xyz="0 1 0"/>', "<axis")))


def test_what_follows_the_robot_is_told_unless_it_is_nothing(tmp_path: Path) -> None:
    for nothing in ("\n", "\0", "\n\0\0 \n", "<!-- made by hand -->"):
        assert load_skeleton(write(tmp_path, GOOD + nothing)).notes == ()
    for rest in ("</robot>", "thanks", GOOD, '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>&x;'):
        s = told(write(tmp_path, GOOD + rest))
        assert s.notes == ("Content after </robot> (line 6) was ignored.",)
        assert len(s) == 3


def test_a_repeated_element_is_told_and_the_first_counts(tmp_path: Path) -> None:
    axis = '<axis xyz="0 1 0"/>'
    s = told(write(tmp_path, GOOD.replace(axis, axis + axis)))
    assert s.notes == ("The second <axis> of <joint> 'j2' (line 4) was not kept: it repeats the first.",)
    text = GOOD.replace(axis, axis + '<axis xyz="1 0 0"/>').replace(LIMIT, LIMIT + '<limit lower="-3" upper="9"/>', 1)
    s = told(write(tmp_path, text))
    assert {note.partition(" of")[0] for note in s.notes} == {"The second <axis>", "The second <limit>"}
    assert all("differs from the first, which is used" in note for note in s.notes)
    assert (s.joint("j2").axis.tolist(), s.joint("j1").limit) == ([0.0, 1.0, 0.0], Interval(-1.0, 2.0))
    child = '<child link="c"/>'
    assert len(told(write(tmp_path, GOOD.replace(child, child + child)))) == 3


def test_macros_beside_a_complete_robot_are_told(tmp_path: Path) -> None:
    text = GOOD.replace("</robot>", '<xacro:sensor at="b"/><xacro:property name="x" value="1"/></robot>')
    s = told(write(tmp_path, text.replace('<link name="c"/>', '<link name="c"><xacro:inertia/></link>')))
    assert len(s) == 3
    (note,) = s.notes
    assert note.startswith("Unexpanded macros (<xacro:inertia>, <xacro:sensor>, <xacro:property>) were not kept.")
    source = '<robot name="r"><link name="a"/><xacro:include filename="arm.xacro"/><xacro:arm/></robot>'
    with pytest.raises(FormatError, match=":1: holds an unexpanded macro <xacro:include>"):
        load_skeleton(write(tmp_path, source))


SOURCE = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="arm.xacro"/>
<xacro:arm/></robot>"""
ARM = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="l" value="0.5"/>
<xacro:macro name="arm">
<link name="a"/><link name="b"/><joint name="j1" type="continuous"><parent link="a"/><child link="b"/>
<origin xyz="${2 * l} 0 0"/></joint></xacro:macro></robot>"""


def stand_in(tmp_path: Path, *lines: str) -> list[str]:
    """A program in place of xacro, which may not be installed here."""
    script = tmp_path / "program.py"
    script.write_text("\n".join(["import sys, time", *lines]))
    return [sys.executable, str(script)]


@pytest.mark.parametrize("name", ["arm.urdf.xacro", "robot.xacro", "robot.urdf"])
def test_sources_of_macros_are_expanded_by_their_program(tmp_path: Path, monkeypatch, name: str) -> None:
    names = load_skeleton(write(tmp_path, GOOD)).joint_names
    path = tmp_path / name
    path.write_text(SOURCE)
    (tmp_path / "arm.xacro").write_text(ARM)
    made = GOOD.replace('"', "'").replace("\n", " ")
    monkeypatch.setattr(xacro, "program", lambda: stand_in(tmp_path, f'print("{made}")'))
    assert load_skeleton(path).joint_names == names
    assert tmp_path / "arm.xacro" in companions_of(path)
    monkeypatch.setattr(xacro, "program", lambda: None)
    with pytest.raises(FormatError, match=f"run `xacro {name} > .*urdf` first"):
        load_skeleton(path)
    monkeypatch.setattr(xacro, "program", lambda: stand_in(tmp_path, "sys.exit('no package named spring')"))
    with pytest.raises(FormatError, match="xacro cannot expand it: no package named spring"):
        load_skeleton(path)
    monkeypatch.setattr(xacro, "program", lambda: [str(tmp_path / "nothing")])
    with pytest.raises(FormatError, match="xacro cannot be run"):
        load_skeleton(path)
    monkeypatch.setattr(xacro, "program", lambda: stand_in(tmp_path, "time.sleep(60)"))
    monkeypatch.setattr(xacro, "_MOST_SECONDS", 0.2)
    with pytest.raises(FormatError, match="xacro does not finish"):
        load_skeleton(path)
    wrong = GOOD.replace('"', "'").replace("\n", " ").replace("type='revolute'", "type='spring'")
    monkeypatch.setattr(xacro, "_MOST_SECONDS", 60.0)
    monkeypatch.setattr(xacro, "program", lambda: stand_in(tmp_path, f'print("{wrong}")'))
    with pytest.raises(FormatError, match=r"\(expanded\):1: joint 'j1' has an unknown type"):
        load_skeleton(path)


@pytest.mark.parametrize(
    ("said", "why", "packages"),
    [
        (
            "warning: old\n\x1b[31merror: name 'x' is not defined\x1b[0m\nwhen evaluating 'x'\nin file: a",
            "name 'x'",
            False,
        ),
        (
            "error: maximum recursion depth\nwhen instantiating macro: m" + "\nfrom: m" * 99,
            "depth, when inst.*: m$",
            False,
        ),
        (
            "XML parsing error: mismatched tag\nwhen processing file: a\n\nCheck that:\n - so",
            "XML parsing error",
            False,
        ),
        ("error: substitution args not supported: No module named 'rospkg'\nin file: a", "'rospkg', in file: a", True),
        ("error: " + "x" * 9999, r"x{240}\.\.\.$", False),
        ("", "exit code 2", False),
    ],
)
def test_the_reason_of_xacro_is_told(tmp_path: Path, monkeypatch, said: str, why: str, packages: bool) -> None:
    path = tmp_path / "arm.xacro"
    path.write_text(SOURCE)
    program = stand_in(tmp_path, f"sys.stderr.write({said!r})", "sys.exit(2)")
    monkeypatch.setattr(xacro, "program", lambda: program)
    with pytest.raises(FormatError, match="xacro cannot expand it: ") as caught:
        load_skeleton(path)
    assert re.search(why, caught.value.what)
    assert "Check that" not in str(caught.value)
    assert ("Install the packages" in str(caught.value)) == packages


def test_a_source_is_expanded_by_xacro_itself(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    path = tmp_path / "robot.urdf.xacro"
    path.write_text(SOURCE)
    (tmp_path / "arm.xacro").write_text(ARM)
    s = load_skeleton(path)
    assert (s.joint_names, s.rest_pose().position("j1").tolist()) == (("a", "j1"), [1.0, 0.0, 0.0])


def test_a_complete_robot_with_the_ending_of_sources_needs_no_program(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(xacro, "program", lambda: None)
    path = tmp_path / "robot.xacro"
    path.write_text(GOOD)
    assert len(load_skeleton(path)) == 3


def test_the_world_need_not_be_defined_and_masses_may_be_missing(tmp_path: Path) -> None:
    text = GOOD.replace('<link name="c"/>', '<link name="c"><inertial><origin xyz="1 2 3"/></inertial></link>')
    fixed = '<joint name="base" type="fixed"><parent link="world"/><child link="a"/></joint></robot>'
    s = told(write(tmp_path, text.replace("</robot>", fixed)))
    assert s.joint_names[:2] == ("world", "base")
    assert s.notes == (
        "The link 'world', the parent of a joint, is not defined; it was added.",
        "The <inertial> of link 'c' has no <mass>; 0 was used.",
    )


def test_limits_that_are_not_kept_and_joints_that_cannot_move_are_told(tmp_path: Path) -> None:
    soft = '<safety_controller k_velocity="9" soft_lower_limit="-0.5" soft_upper_limit="{}"/>'
    text = f"""<robot name="r">{links(*"abcdefg")}
    {joint("j1", "a", "b", "revolute", LIMIT + soft.format(1.5))}
    {joint("j2", "b", "c", "prismatic", LIMIT + soft.format(9))}
    {joint("j3", "b", "d", "revolute", LIMIT + '<safety_controller soft_lower_limit="-2" soft_upper_limit="3"/>')}
    {joint("j4", "d", "e", "revolute", '<limit effort="1" velocity="1"/>')}
    {joint("j5", "e", "f", "prismatic", '<limit lower="0.25" upper="0.25"/>')}
    {joint("j6", "f", "g", "continuous", LIMIT + "<safety_controller/>")}</robot>"""
    s = told(write(tmp_path, text))
    assert s.notes == (
        "Joints that cannot move, because their limits leave one value: 'j4' (at 0), 'j5' (at 0.25).",
        "Limits of joints whose type allows none were ignored: 'j6' (continuous).",
        "Soft limits of safety controllers were not kept, only those of <limit>: 'j1' (-0.5 to 1.5), 'j2' (-0.5 to 2).",
    )
    assert s.joint("j1").limit == s.joint("j3").limit == Interval(-1.0, 2.0)


def test_couplings_in_extensions_are_told(tmp_path: Path) -> None:
    text = f"""<robot name="r">{links(*"abcd")}{joint("j1", "a", "b", "continuous")}
    {joint("j2", "a", "c", "continuous")}{joint("j3", "a", "d", "continuous", '<mimic joint="j1"/>')}
    <gazebo><plugin name="p"><joint>j1</joint><mimicJoint>
      j2 </mimicJoint><multiplier>2</multiplier></plugin>
      <plugin><joint>j1</joint><mimicJoint>j3</mimicJoint></plugin></gazebo>
    <ros2_control name="c"><joint name="j2"><param name="mimic">j1</param></joint></ros2_control></robot>"""
    s = told(write(tmp_path, text))
    assert s.notes == ("Couplings in extensions, without <mimic>, were not kept; joint (leader): 'j2' ('j1').",)


def test_a_spherical_joint_is_a_ball(tmp_path: Path) -> None:
    s = load_skeleton(write(tmp_path, GOOD.replace("revolute", "spherical").replace(LIMIT, "", 1)))
    assert (s.joint("j1").kind, s.joint("j1").limit, s.nv) == (Kind.BALL, None, 4)
    assert "'j1' (spherical)" in told(write(tmp_path, GOOD.replace("revolute", "spherical"))).notes[0]


def test_a_cycle_without_a_root_is_found(tmp_path: Path) -> None:
    text = f'<robot name="r">{links("a", "b")}{joint("j1", "a", "b")}{joint("j2", "b", "a")}</robot>'
    with pytest.raises(FormatError, match="there is no root"):
        load_skeleton(write(tmp_path, text))


def test_a_cycle_beside_the_root_is_found(tmp_path: Path) -> None:
    text = f"""<robot name="r">{links("a", "b", "c", "d")}
    {joint("j1", "a", "b")}{joint("j2", "c", "d")}
    {joint("j3", "d", "c")}</robot>"""
    with pytest.raises(
        FormatError, match=r":2: joints form a cycle that the root does not reach: .*got \['j2', 'j3'\]"
    ):
        load_skeleton(write(tmp_path, text))


BOMB = """<!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">""" + "".join(
    f'<!ENTITY {b} "{("&" + a + ";") * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (BOMB + ']><robot name="&j;"><link name="a"/></robot>', "document type"),
        ('<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>', "document type"),
        ("<robot>" + "<a>" * 100_000, "nested too deep"),
        ("<robot>" + "<a/>" * 1_000_000, "too many elements"),
        ("<robot/>", "has no link"),
        ('<robot name="r"></robot>\n', "has no link"),
        ("not XML at all", "not well-formed XML"),
        (b"\x00\x01\x02\xff" * 100, "not well-formed XML"),
        ("<html><body/></html>", "another kind (<html>)"),
        ('<?xml version="1.0" encoding="klingon"?><robot/>', "not readable XML"),
        ("<!-- nothing -->", "not well-formed XML"),
    ],
    ids=range(11),  # megabytes would be a name
)
def test_hostile_files_fail_within_a_second(tmp_path: Path, content: str | bytes, says: str) -> None:
    path = write(tmp_path, content)
    start = time.process_time()
    with pytest.raises(FormatError) as caught:
        load_skeleton(path)
    assert time.process_time() - start < HANG
    assert says in str(caught.value)


def test_truncated_at_every_line(tmp_path: Path) -> None:
    lines = ALL_TYPES.splitlines(keepends=True)
    for n in range(1, len(lines)):
        with pytest.raises(FormatError, match=r"robot\.urdf:\d+: is not well-formed XML"):
            load_skeleton(write(tmp_path, "".join(lines[:n])))
    with pytest.raises(FileError, match="empty"):
        load_skeleton(write(tmp_path, ""))


def chain(n: int) -> str:
    more = '<origin xyz="0 0 1" rpy="0.1 0.2 0.3"/><axis xyz="0 1 0"/>' + LIMIT
    body = "".join(joint(f"j{i}", f"l{i}", f"l{i + 1}", "revolute", more) for i in range(n - 1))
    return f'<robot name="r">{links(*(f"l{i}" for i in range(n)))}{body}</robot>'


@pytest.mark.compiled
def test_3000_links_in_a_row_take_less_than_two_seconds(tmp_path: Path) -> None:
    path = write(tmp_path, chain(3000))
    start = time.process_time()
    skeleton = load_skeleton(path)
    assert time.process_time() - start < HANG
    assert len(skeleton) == 3000
    assert np.isfinite(skeleton.rest_pose().positions).all()


def test_too_many_links_fail_within_a_second(tmp_path: Path) -> None:
    path = write(tmp_path, chain(MAX_JOINTS + 1))
    start = time.process_time()
    with pytest.raises(FormatError, match=f"too many <link>: expected at most {MAX_JOINTS}"):
        load_skeleton(path)
    assert time.process_time() - start < HANG


@pytest.mark.parametrize("encode", ["utf-8", "utf-8-sig", "utf-16"])
def test_content_decides_whatever_the_name(tmp_path: Path, encode: str) -> None:
    text = "\n<!-- a <mujoco> b -->\n<!-- é -->" + GOOD
    path = write(tmp_path, text.encode(encode), "robot.txt")
    assert len(load_skeleton(path)) == 3


def test_looks_like() -> None:
    assert urdf.FORMAT.looks_like(b'<?xml version="1.0"?>\n<robot>')
    assert not urdf.FORMAT.looks_like(b"<robots>")
    assert not urdf.FORMAT.looks_like(b"<!-- <robot> --><mujoco>")
    assert not urdf.FORMAT.looks_like(b"HIERARCHY")


def test_attributes_need_no_space_between_them(tmp_path):
    text = """<robot name='r'><!-- <a b="1"c="2"/> --><link name="a"/><link name="b"/>
      <joint name="j"type="revolute"><parent link="a"/><child link='b'/><origin xyz="0 0 1"rpy="0 0 0"/>
      <axis xyz="0 1 0"/><limit lower="-1"upper="2"effort="1"velocity="1"/></joint></robot>"""
    (tmp_path / "tight.urdf").write_text(text)
    (tmp_path / "spaced.urdf").write_text(re.sub(r"""(="[^"]*"|='[^']*')(?=[a-z])""", r"\1 ", text))
    with pytest.warns(UserWarning, match=r"Attributes without a space between them \(line 2\)"):
        tight = load_skeleton(tmp_path / "tight.urdf")
    spaced = load_skeleton(tmp_path / "spaced.urdf")
    np.testing.assert_array_equal(tight.limits, spaced.limits)
    np.testing.assert_array_equal(tight.rest_pose().frames, spaced.rest_pose().frames)
    (tmp_path / "wrong.urdf").write_text(text.replace("</robot>", "</rob>"))
    with pytest.raises(FormatError, match=":3: is not well-formed XML: mismatched tag"):
        load_skeleton(tmp_path / "wrong.urdf")
