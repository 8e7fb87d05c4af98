"""``synovia inspect`` and ``synovia doctor``."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import synovia as sy
from cli_runs import assert_refused, run
from synovia.cli.installation import installation_text
from synovia.errors import install_command
from synovia.kernels.compiler.entries import ENTRIES, Entry


def test_hands_and_their_fingers_are_listed() -> None:
    ran = run("inspect", "humanoid_hands")
    assert "left at left_hand: thumb 3, index 3, middle 3, ring 3, little 3" in ran.out
    hands = run("inspect", "humanoid_hands", "--json").data["hands"]
    assert [hand["side"] for hand in hands] == ["left", "right"]
    assert hands[0]["fingers"][1] == {
        "name": "index", "joints": ["left_index_1", "left_index_2", "left_index_3"], "tip": "left_index_tip",
        "estimated": False,
    }  # fmt: skip
    assert run("inspect", "arm7", "--json").data["hands"] == []


@pytest.mark.parametrize("name", ["arm7", "humanoid", "quadruped"])
def test_the_object_is_the_model(name: str) -> None:
    skeleton = sy.bundled(name)
    ran = run("inspect", name, "--json")
    assert (ran.code, ran.err) == (0, "")
    data = ran.data
    assert data["schema"] == "synovia.inspect/1"
    assert (data["model"], data["up"], data["forward"]) == (skeleton.name, skeleton.up, skeleton.forward)
    assert (data["nq"], data["nv"], data["degrees_of_freedom"]) == (skeleton.nq, skeleton.nv, skeleton.nv)
    assert (data["unit"], data["meters_per_unit"]) == ("m", 1.0)
    assert data["tips"] == list(skeleton.tips)
    assert data["roles"] == dict(skeleton.roles)
    assert data["clips"] == []
    assert [joint["name"] for joint in data["joints"]] == list(skeleton.joint_names)
    for row, (shown, joint) in enumerate(zip(data["joints"], skeleton.joints, strict=True)):
        assert (shown["row"], shown["kind"], shown["tip"]) == (row, joint.kind.name, joint.tip)
        assert shown["rest"] == joint.rest.tolist()
        if isinstance(joint.limit, sy.Interval):
            assert shown["limit"] == {"lower": joint.limit.lower, "upper": joint.limit.upper}
        elif isinstance(joint.limit, sy.SwingTwist):
            assert shown["limit"]["twist"] == list(joint.limit.twist)


def test_the_tree_for_people() -> None:
    lines = run("inspect", "arm7").out.splitlines()
    assert lines[0] == "arm7"
    assert "degrees of freedom 7" in lines[1]
    assert lines[2] == "unit m, up z, forward x"
    assert "base  fixed" in lines
    (joint4,) = [line for line in lines if "joint4 " in line]
    assert joint4.endswith("joint4  hinge  -176 to -4 deg")
    assert lines[-1].endswith("tool  fixed  tip")


URDF = """
<robot name="r"><link name="a"/><link name="b"/><link name="c"/><link name="d"/>
<joint name="ab" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>
<joint name="bc" type="prismatic"><parent link="b"/><child link="c"/><axis xyz="0 0 1"/>
  <limit lower="-0.1" upper="0.25" effort="1" velocity="1"/></joint>
<joint name="cd" type="prismatic"><parent link="c"/><child link="d"/><axis xyz="0 0 1"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="bc" multiplier="2" offset="0.5"/></joint>
</robot>"""


def test_slides_followers_and_joints_without_limits(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(URDF)
    out = run("inspect", tmp_path / "r.urdf").out
    assert "ab  hinge  no limits  carries b" in out
    assert "bc  slide  -0.1 to 0.25 m  carries c" in out
    assert "follows bc" in out
    assert "degrees of freedom 2" in out
    data = run("inspect", tmp_path / "r.urdf", "--json").data
    assert data["degrees_of_freedom"] == 2
    follower = next(joint for joint in data["joints"] if joint["name"] == "cd")
    assert {key: follower["mimic"][key] for key in ("leader", "ratio", "offset")} == {
        "leader": "bc",
        "ratio": 2.0,
        "offset": 0.5,
    }
    assert [follower["mimic"][key] for key in ("lower", "upper")] == pytest.approx([0.3, 1.0])
    assert (follower["mimic"]["binds"], follower["mimic"]["beyond_limits"]) == (False, False)
    assert "beyond" not in out
    assert follower["parent"] == "bc"


def test_where_leader_and_follower_disagree(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(URDF.replace('multiplier="2"', 'multiplier="-4"'))
    out = run("inspect", tmp_path / "r.urdf").out
    assert "cd  slide  -1 to 1 m  follows bc, beyond its own limits: -0.5 to 0.9 m" not in out
    (tmp_path / "r.urdf").write_text(URDF.replace('multiplier="2"', 'multiplier="-8"'))
    out = run("inspect", tmp_path / "r.urdf").out
    assert "cd  slide  -1 to 1 m  follows bc, beyond its own limits: -1.5 to 1.3 m" in out
    data = run("inspect", tmp_path / "r.urdf", "--json").data
    assert data["joints"][-1]["mimic"]["beyond_limits"] is True
    assert data["joints"][-1]["limit"] == {"lower": -1.0, "upper": 1.0}


def test_what_was_not_kept_and_a_leader_that_is_restricted(tmp_path: Path) -> None:
    slide = {"kind": sy.Kind.SLIDE, "axis": (0, 0, 1), "limit": sy.Interval(-1, 1)}
    joints = [sy.Joint("a", **slide), sy.Joint("b", "a", mimic=sy.Mimic("a", 2.0, binds=True), **slide)]
    skeleton = sy.Skeleton(joints, meters_per_unit=1.0, notes=["The weld was not kept."])
    sy.formats.write_skeleton(skeleton, tmp_path / "s.toml")
    ran = run("inspect", tmp_path / "s.toml")
    assert "The weld was not kept." in ran.out.splitlines()
    assert ran.err == ""
    assert "a  slide  -1 to 1 m  restricted by mimic joints: -0.5 to 0.5 m" in ran.out
    assert run("inspect", tmp_path / "s.toml", "--json").data["notes"] == ["The weld was not kept."]
    ran = run("solve", tmp_path / "s.toml", "-t", "b=0,0,0.3", "--json")
    assert ran.err.startswith("synovia: The weld was not kept.\n")


def test_the_loops_of_a_real_gripper(shared_data: Path) -> None:
    pytest.importorskip("mujoco")
    path = shared_data / "robot" / "xarm7_hand_nomesh.xml"
    data = run("inspect", path, "--json").data
    assert [(tie["kind"], tie["conditions"], tie["locked"]) for tie in data["loops"]] == [("point", 3, False)] * 2
    assert (data["mobility"]["freedom"], data["mobility"]["redundant"], data["mobility"]["singular"]) == (1, 2, False)
    assert (len(data["mobility"]["following"]), data["mobility"]["locked"]) == (4, [])
    lines = run("inspect", path).out.splitlines()
    assert "2 loops: 1 of 5 degrees of freedom left; 2 conditions are redundant" in lines
    assert "left_finger - left_inner_knuckle  point" in lines


FOUR_BAR = """<robot name="bars"><link name="base"/><link name="crank"/><link name="coupler"/><link name="rocker"/>
<joint name="a" type="continuous"><parent link="base"/><child link="crank"/><axis xyz="0 0 1"/></joint>
<joint name="b" type="continuous"><parent link="crank"/><child link="coupler"/><origin xyz="1 0 0"/><axis xyz="0 0 1"/>
</joint>
<joint name="c" type="continuous"><parent link="base"/><child link="rocker"/><origin xyz="3 0 0"/><axis xyz="0 0 1"/>
</joint></robot>"""
PIN = """schema = "synovia.loops/1"
[[loop]]
name = "pin"
first = "coupler"
second = "rocker"
offset = [2.5, 0, 0]
other_offset = [1.5, 0, 0]
"""


def test_loops_beside_a_model(tmp_path: Path) -> None:
    (tmp_path / "bars.urdf").write_text(FOUR_BAR)
    other = tmp_path / "pin.toml"
    other.write_text(PIN)
    assert run("inspect", tmp_path / "bars.urdf", "--json").data["mobility"] is None
    data = run("inspect", tmp_path / "bars.urdf", "--loops", other, "--json").data
    assert (data["degrees_of_freedom"], data["mobility"]["freedom"], data["mobility"]["redundant"]) == (3, 1, 1)
    assert data["mobility"]["following"] == ["b", "c"]
    goal = ("-t", "coupler=0.6,0.8,0", "--json")
    q = run("solve", tmp_path / "bars.urdf", "--loops", other, "--root", "fixed", *goal).data["q"]
    skeleton = sy.load_skeleton(tmp_path / "bars.urdf", loops=other)
    assert sy.Pose(skeleton, q)["a"] == pytest.approx(math.atan2(0.8, 0.6), abs=1e-3)  # an open pose is refused
    other.rename(tmp_path / "bars.loops.toml")
    assert run("inspect", tmp_path / "bars.urdf", "--json").data["loops"] == data["loops"]
    assert run("solve", tmp_path / "bars.urdf", *goal).data["q"] == pytest.approx(q)


def test_a_loop_that_leaves_no_motion(tmp_path: Path) -> None:
    (tmp_path / "bars.urdf").write_text(FOUR_BAR)
    more = '[[loop]]\nname = "strut"\nfirst = "crank"\nsecond = "rocker"\nkind = "weld"\nother_offset = [-3, 0, 0]\n'
    (tmp_path / "bars.loops.toml").write_text('schema = "synovia.loops/1"\n' + more)
    out = run("inspect", tmp_path / "bars.urdf").out
    assert "1 loop: 1 of 3 degrees of freedom left; 4 conditions are redundant" in out
    assert "strut  weld  crank - rocker  locks 'a', 'c'" in out


def test_a_joint_by_the_link_that_it_carries(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(URDF)
    ran = run("solve", tmp_path / "r.urdf", "-t", "c=0,0,0.2", "--json")
    assert ran.code == 0
    assert ran.data["goals"][0]["joint"] == "c"
    assert ran.data["q"]["bc"] == pytest.approx(0.2, abs=1e-3)
    assert ran.data["q"]["cd"] == pytest.approx(2 * ran.data["q"]["bc"] + 0.5)
    assert_refused(run("solve", tmp_path / "r.urdf", "-t", "c=0,0,0.2", "-t", "bc=0,0,0.1"), "got two for 'bc'", code=2)


def test_clips_of_a_motion(tmp_path: Path) -> None:
    (tmp_path / "m.bvh").write_text(
        "HIERARCHY\nROOT hips\n{\nOFFSET 0 0 0\nCHANNELS 3 Zrotation Xrotation Yrotation\n"
        "End Site\n{\nOFFSET 0 1 0\n}\n}\nMOTION\nFrames: 3\nFrame Time: 0.1\n0 0 0\n10 0 0\n20 0 0\n"
    )
    (clip,) = run("inspect", tmp_path / "m.bvh", "--json").data["clips"]
    assert clip["frames"] == 3
    assert clip["fps"] == pytest.approx(10.0)
    assert clip["duration"] == pytest.approx(0.2)
    assert "3 frames at 10 fps, 0.2 s" in run("inspect", tmp_path / "m.bvh").out


def test_a_very_deep_chain(tmp_path: Path) -> None:
    count = 1100  # more than functions of Python may be nested
    links = "".join(f'<link name="l{i}"/>' for i in range(count))
    joints = "".join(
        f'<joint name="j{i}" type="fixed"><parent link="l{i}"/><child link="l{i + 1}"/></joint>'
        for i in range(count - 1)
    )
    (tmp_path / "deep.urdf").write_text(f'<robot name="deep">{links}{joints}</robot>')
    ran = run("inspect", tmp_path / "deep.urdf")
    assert ran.code == 0
    assert len(ran.out.splitlines()) >= count
    assert len(run("inspect", tmp_path / "deep.urdf", "--json").data["joints"]) == count


@pytest.mark.parametrize(
    ("model", "freedom", "clips"),
    [
        ("robot/panda.urdf", 8, 0),
        ("robot/ur5_robot.urdf", 6, 0),
        ("robot/g1_29dof.urdf", 29, 0),
        ("character/greenman.glb", None, None),
        ("motion/cmu_07_01_walk.bvh", None, 1),
    ],
)
def test_real_models(model: str, freedom: int | None, clips: int | None, shared_data: Path) -> None:
    data = run("inspect", shared_data / model, "--json").data
    assert freedom is None or data["degrees_of_freedom"] == freedom
    assert len(data["clips"]) >= 1 if clips is None else len(data["clips"]) == clips
    assert run("inspect", shared_data / model).code == 0


def test_doctor() -> None:
    ran = run("doctor", "--json")
    assert (ran.code, ran.err) == (0, "")
    data = ran.data
    assert data["schema"] == "synovia.doctor/1"
    assert data["python"] == ".".join(map(str, sys.version_info[:3]))
    extras = "jit meshes view render film plot mujoco c3d fbx data ray torch jax"
    assert set(data["extras"]) == set(extras.split())
    assert data["packages"]["numpy"]["problem"] is None
    assert data["cache"]["folder"]
    text = run("doctor").out
    assert "cache of compiled code" in text
    assert data["cache"]["folder"] in text


@pytest.mark.parametrize(("mode", "warned"), [("jit", True), ("prebuilt", False)])
def test_doctor_asks_for_a_cache_only_where_something_is_compiled(mode: str, warned: bool) -> None:
    state = run("doctor", "--json").data
    state["kernels"] |= {"mode": mode, "level": "x86_64_v3", "reason": ""}
    state["cache"]["writable"] = False
    text = "\n".join(installation_text(state))
    assert ("every process compiles again; set SYNOVIA_CACHE_DIR" in text) == warned


def test_doctor_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import synovia.cli.installation as installation

    def none_installed(_: str) -> None:
        return None

    monkeypatch.setattr(installation, "_installed", none_installed)
    data = run("doctor", "--json").data
    assert data["extras"]["render"]["installed"] is False
    assert data["extras"]["render"]["install"] == install_command("render")
    assert install_command("render") in run("doctor").out


def test_doctor_finds_a_broken_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msgspec", None)
    assert "msgspec" in run("doctor", "--json").data["packages"]["msgspec"]["problem"]


def test_doctor_survives_a_package_that_ends_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("import sys\nsys.exit('no LLVM here')\n")
    monkeypatch.setattr("synovia.cli.installation._installed", lambda _: "1.0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert run("doctor", "--json").data["extras"]["jit"]["problem"] == "SystemExit: no LLVM here"


FEW = ("tree.forward.forward_many", "tree.tables.validate", "tree.tables.random_rows")  # what takes a second or two


@pytest.mark.compiled
@pytest.mark.jit
def test_doctor_compiles_ahead_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synovia.kernels.compiler.entries.ENTRIES", {name: ENTRIES[name] for name in FEW})
    ran = run("doctor", "--warm", "--json")
    assert ran.code == 0
    assert set(ran.data["warmed"]) == {ENTRIES[name].words for name in FEW}
    assert all(math.isfinite(seconds) for seconds in ran.data["warmed"].values())
    assert len(ran.err.splitlines()) == len(FEW)
    assert ran.data["cache"]["bytes"] > 0


@pytest.mark.compiled
@pytest.mark.jit
def test_doctor_tells_what_cannot_be_compiled_and_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    going = []

    def start(*args: object, **options: object) -> subprocess.Popen:
        going.append(subprocess.Popen(*args, **options))
        return going[-1]

    entries = {
        "tree.forward.forward_many": ENTRIES["tree.forward.forward_many"],
        "tree.forward.missing": Entry("nothing", 1.0),
    }
    monkeypatch.setattr("synovia.kernels.compiler.entries.ENTRIES", entries)
    monkeypatch.setattr("synovia.compiling.subprocess", SimpleNamespace(Popen=start, PIPE=subprocess.PIPE))
    ran = run("doctor", "--warm")
    assert (ran.code, ran.out) == (3, "")
    assert "the compiler of nothing has failed" in ran.err
    assert "missing" in ran.err
    assert "AttributeError" in ran.err
    assert "Traceback" not in ran.err
    assert going
    assert all(process.poll() is not None for process in going)


@pytest.mark.compiled
@pytest.mark.jit
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_ends_compiling_ahead_at_once(tmp_path: Path) -> None:
    """The compiler hears no signal: the processes that compile are killed, and what is half done is not kept."""
    environment = {**os.environ, "SYNOVIA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "synovia", "doctor", "--warm"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as doctor:
        first = doctor.stderr.readline()  # the others compile
        before = time.monotonic()
        doctor.send_signal(signal.SIGINT)
        _, told = doctor.communicate(timeout=60)
        assert doctor.returncode == 130
        assert time.monotonic() - before < 20.0, "it waited for the compiler"
    assert "ready after" in first
    assert "Traceback" not in told
    size = sum(path.stat().st_size for path in tmp_path.rglob("*"))
    time.sleep(1.0)
    assert size == sum(path.stat().st_size for path in tmp_path.rglob("*")), "a process still compiles"


def test_ambiguous_names(tmp_path: Path) -> None:
    (tmp_path / "m.bvh").write_text(
        "HIERARCHY\nROOT hips\n{\nOFFSET 0 0 0\nCHANNELS 3 Zrotation Xrotation Yrotation\n"
        + "JOINT knee\n{\nOFFSET 0 1 0\nCHANNELS 3 Zrotation Xrotation Yrotation\nEnd Site\n{\nOFFSET 0 1 0\n}\n}\n" * 2
        + "}\nMOTION\nFrames: 0\nFrame Time: 0.1\n"
    )
    ran = run("solve", tmp_path / "m.bvh", "-t", "knee=0,1,0")
    assert_refused(ran, "'knee' means several joints", "hips/knee (joint 1)", "row")
    assert run("solve", tmp_path / "m.bvh", "-t", "1=0.6,0.8,0", "--json").code in (0, 1)
