"""``synovia solve``: answers, files that it writes, and the real models."""

import json
import math
import os
import re
import subprocess
import sys
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from cli_runs import Ran, assert_refused, run, run_apart
from conftest import SMALLER
from synovia.cli.installation import installation_text
from synovia.solver import Solver, solvers

REAL = (
    "robot/panda.urdf",
    "robot/ur5_robot.urdf",
    "robot/g1_29dof.urdf",
    "character/greenman.glb",
    "motion/cmu_07_01_walk.bvh",
)
LARGE = "character/mannequiny.glb"  # its many clips take most of the time of a command, so one solver has it

REACH = Path(__file__).parents[1] / "examples" / "reach.toml"
GENERAL = sorted(name for name, kind in solvers.items() if kind.restrict is Solver.restrict)  # made for any joints


def _text(values: np.ndarray) -> str:
    return ",".join(repr(float(v)) for v in values)


def _far_tip(skeleton: sy.Skeleton, pose: sy.Pose) -> int:
    """The row of the tip that is farthest from where it rests, so that there is something to do."""
    rest = skeleton.rest_pose()
    tips = [skeleton.index(row) for row in range(len(skeleton)) if not skeleton.children[row]]
    return max(tips, key=lambda row: float(np.linalg.norm(pose.positions[row] - rest.positions[row])))


def _check_against_kinematics(skeleton: sy.Skeleton, ran: Ran) -> None:
    """The errors that were printed are those of the values that were printed, and the values keep their limits."""
    data = ran.data
    pose = skeleton.rest_pose().with_values(data["q"])
    lower, upper = skeleton.limits
    assert (pose.q >= lower - 1e-9).all()
    assert (pose.q <= upper + 1e-9).all()
    for goal in data["goals"]:
        if goal["target_position"] is not None:
            miss = np.linalg.norm(pose.position(goal["joint"]) - goal["target_position"])
            assert miss == pytest.approx(goal["position_error"], abs=1e-9 * max(1.0, data["reach"]))
            assert goal["reached"] == (goal["position_error"] <= data["tolerance"]["position"])


def test_reached() -> None:
    arm = sy.bundled("arm7")
    target = arm.random_pose(3).position("tool")
    ran = run("solve", "arm7", "-t", f"tool={_text(target)}", "--json")
    assert (ran.code, ran.err) == (0, "")
    data = ran.data
    assert data["schema"] == "synovia.solve/1"
    assert data["status"] == "REACHED"
    assert data["reached"] is True
    assert data["solver"] == "lm"
    assert (data["unit"], data["meters_per_unit"]) == ("m", 1.0)
    assert data["steps"] > 0
    assert data["attempts"] >= 1
    (goal,) = data["goals"]
    assert (goal["joint"], goal["name"], goal["kind"], goal["angle_error"]) == ("tool", "tool", "position", 0.0)
    assert goal["target_position"] == target.tolist()
    assert goal["position_error"] < 1e-3
    _check_against_kinematics(arm, ran)


def test_unreachable_gives_the_distance_and_the_best_pose(tmp_path: Path) -> None:
    arm = sy.bundled("arm7")
    ran = run("solve", "arm7", "-t", "tool=5,5,5", "--json", "-o", tmp_path / "best.json")
    assert ran.code == 1
    data = ran.data
    assert data["status"] == "UNREACHABLE"
    assert data["goals"][0]["reached"] is False
    assert data["goals"][0]["position_error"] == pytest.approx(math.sqrt(75) - 1.09, abs=0.2)
    assert any("missed by" in line for line in data["explanation"])
    _check_against_kinematics(arm, ran)
    written = json.loads((tmp_path / "best.json").read_text())
    assert written == {"schema": "synovia.pose/1", "model": "arm7", "q": data["q"]}


def test_text_for_people() -> None:
    ran = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("REACHED in ")
    assert " mm" in ran.out
    assert " deg" in ran.out
    ran = run("solve", "arm7", "-t", "tool=5,5,5")
    assert ran.code == 1
    assert ran.out.startswith("UNREACHABLE in ")
    assert "Goal 'tool' is missed by 7.5" in ran.out
    assert all(line == line.rstrip() for line in ran.out.splitlines())


def test_rotations_and_poses() -> None:
    arm = sy.bundled("arm7")
    goal = arm.random_pose(11)
    angles = goal.rotation("tool").as_euler("zyx", degrees=True)
    both = run(
        "solve", "arm7", "-t", f"tool={_text(goal.position('tool'))}", "-r", f"tool=zyx:{_text(angles)}", "--json"
    )
    assert both.code == 0
    (one,) = both.data["goals"]
    assert one["kind"] == "pose"
    assert max(one["position_error"], one["angle_error"]) < 1e-3
    reached = arm.rest_pose().with_values(both.data["q"])
    assert (reached.rotation("tool").inv() * goal.rotation("tool")).magnitude() < 2e-3
    assert _same_turn(one["target_quat_xyzw"], goal)
    quat = goal.rotation("tool").as_quat()
    turned = run("solve", "arm7", "-r", f"tool=quat_xyzw:{_text(quat)}", "--json")
    assert turned.code == 0
    (one,) = turned.data["goals"]
    assert (one["kind"], one["target_position"], one["position_error"]) == ("rotation", None, 0.0)
    assert _same_turn(one["target_quat_xyzw"], goal)
    swapped = run("solve", "arm7", "-r", f"tool=quat_wxyz:{_text(np.roll(quat, 1))}", "--json")
    assert _same_turn(swapped.data["goals"][0]["target_quat_xyzw"], goal)


def _same_turn(quat: list[float], pose: sy.Pose) -> bool:
    return bool((sy.Rotation.from_quat(quat).inv() * pose.rotation("tool")).magnitude() < 1e-9)


def test_several_joints_of_a_body() -> None:
    body = sy.bundled("humanoid")
    ran = run("solve", "humanoid", "-t", "left_hand=0.4,1.2,0.4", "-t", "right_foot=-0.1,0.3,0.2", "--json")
    assert ran.code == 0
    assert [goal["joint"] for goal in ran.data["goals"]] == ["left_hand", "right_foot"]
    pose = body.rest_pose().with_values(ran.data["q"])
    np.testing.assert_allclose(pose.position("left_hand"), (0.4, 1.2, 0.4), atol=1e-3)
    np.testing.assert_allclose(pose.position("hips"), body.rest_pose().position("hips"), atol=1e-12)


def test_a_row_number_and_a_name_mean_the_same_joint() -> None:
    row = sy.bundled("arm7").index("tool")
    one = run("solve", "arm7", "-t", f"{row}=0.4,0.1,0.5", "--json").data
    other = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--json").data
    assert one["q"] == other["q"]
    assert_refused(run("solve", "arm7", "-t", f"{row}=0.4,0.1,0.5", "-t", "tool=0.4,0.1,0.5"), code=2)


@pytest.mark.parametrize("name", GENERAL)
def test_every_solver_by_name(name: str) -> None:
    body = sy.bundled("humanoid")
    target = body.random_pose(5).position("left_hand")
    ran = run("solve", "humanoid", "-t", f"left_hand={_text(target)}", "--solver", name, "--json")
    assert ran.code == 0, ran
    assert ran.data["solver"] == name
    _check_against_kinematics(body, ran)


def test_tolerance_in_file_units_and_degrees() -> None:
    tight = run(
        "solve", "arm7", "-t", "tool=0.4,0.1,0.5", "-r", "tool=xyz:170,5,9", "--tol", "1e-7,1e-4", "--json"
    ).data
    assert tight["tolerance"] == {"position": 1e-7, "angle": pytest.approx(math.radians(1e-4))}
    assert tight["goals"][0]["position_error"] <= 1e-7
    length = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--tol", "0.01", "--json").data
    assert length["tolerance"] == {"position": 0.01, "angle": 1e-3}


def test_starts() -> None:
    arm = sy.bundled("arm7")
    start = arm.random_pose(9)
    there = _text(start.position("tool"))
    assert run("solve", "arm7", "-t", f"tool={there}", "--start", "random:9", "--json").data["steps"] == 0
    assert run("solve", "arm7", "-t", f"tool={there}", "--start", "rest", "--json").data["steps"] > 0


def test_the_pose_file_is_a_start(tmp_path: Path) -> None:
    first = run("solve", "humanoid", "-t", "left_hand=0.4,1.2,0.4", "-o", tmp_path / "a.json", "--json")
    again = run("solve", "humanoid", "-t", "left_hand=0.4,1.2,0.4", "--start", tmp_path / "a.json", "--json")
    assert again.data["steps"] == 0
    body = sy.bundled("humanoid").rest_pose()  # reading makes quaternions exact again, in the last bit
    np.testing.assert_allclose(body.with_values(again.data["q"]).q, body.with_values(first.data["q"]).q, atol=1e-15)


def test_a_free_root_moves_and_can_be_read_again(tmp_path: Path) -> None:
    options = ["-t", "tool=5,5,5", "--root", "free", "--json"]
    ran = run("solve", "arm7", *options, "-o", tmp_path / "a.json")
    assert ran.code == 0
    assert len(ran.data["q"]["root"]) == 7
    assert run("solve", "arm7", *options, "--start", tmp_path / "a.json").data["steps"] == 0
    ran = run("solve", "arm7", "-t", "tool=5,5,5", "--start", tmp_path / "a.json")
    assert_refused(ran, "a.json", "no joint named 'root'")


def test_seeds_and_attempts() -> None:
    common = ["solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--json"]
    assert run(*common, "--attempts", "1").data["attempts"] == 1
    one, two = run(*common, "--seed", "7").data, run(*common, "--seed", "7").data
    del one["seconds"], two["seconds"]
    assert one == two
    for option, setting in (("--attempts", "attempts"), ("--seed", "seed")):
        refused = run(*common, "--solver", "hinges", option, "5")
        assert refused.code == 2
        assert f"expected a solver with {setting}, got 'hinges'" in refused.err


def test_files_that_exist_are_kept_unless_forced(tmp_path: Path, small_pictures: None) -> None:
    for name, option in (("a.json", "-o"), ("a.png", "--picture")):
        (tmp_path / name).write_text("precious")
        command = ["solve", "arm7", "-t", "tool=0.4,0.1,0.5", option, tmp_path / name]
        assert_refused(run(*command), name, "exists", "--force")
        assert (tmp_path / name).read_text() == "precious"
        assert run(*command, "--force").code == 0
        assert (tmp_path / name).read_bytes() != b"precious"
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "a.png"}


def test_a_folder_is_no_place_for_a_pose(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    for folder in (tmp_path / "a.json", tmp_path, "answers/"):
        ran = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "-o", folder, "--force")
        assert_refused(ran, "'-o': expected a file that ends in .json for one pose, got the folder", code=2)


def test_picture(tmp_path: Path, small_pictures: None) -> None:
    image = pytest.importorskip("PIL.Image")
    for name, target, code in (("hit.png", "0.4,0.1,0.5", 0), ("miss.png", "1.2,0.1,0.5", 1)):
        command = ["solve", "arm7", "-t", f"tool={target}", "-r", "tool=xyz:180,0,0", "--picture", tmp_path / name]
        assert run(*command).code == code
        with image.open(tmp_path / name) as picture:
            assert picture.size == (1200 // SMALLER, 900 // SMALLER)


def test_goals_from_a_file_and_options_together(tmp_path: Path) -> None:
    (tmp_path / "goals.toml").write_text(
        """
        schema = "synovia.goals/1"
        [[goals]]
        kind = "position"
        joint = "left_hand"
        name = "reach"
        position = [0.4, 1.2, 0.4]
        weight = 2
        [[goals]]
        kind = "pose"
        joint = "right_foot"
        [[goals]]
        kind = "rest"
        """
    )
    ran = run("solve", "humanoid", "-g", tmp_path / "goals.toml", "-t", "right_hand=-0.4,1.3,0.3", "--json")
    assert ran.code == 0
    assert [goal["name"] for goal in ran.data["goals"]] == ["reach", "right_foot", "rest", "right_hand"]
    assert ran.data["goals"][0]["weight"] == 2.0
    posture = ran.data["goals"][2]  # a posture is nowhere, and below all priorities
    assert [posture[key] for key in ("position", "quat_xyzw", "target_position", "priority")] == [None] * 4
    rest = sy.bundled("humanoid").rest_pose()
    np.testing.assert_allclose(ran.data["goals"][1]["target_position"], rest.position("right_foot"), atol=1e-12)


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    assert run_apart("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--json").data["status"] == "REACHED"
    ran = run_apart("solve", "arm7", "-t", "tool=5,5,5", "-o", tmp_path / "a.json")
    assert (ran.code, ran.err) == (1, "")
    assert (tmp_path / "a.json").exists()


def _without_compiled_kernels(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a clone in which nothing is compiled yet."""
    chosen = ("SYNOVIA_KERNELS", "NUMBA_DISABLE_JIT")
    kept = {name: value for name, value in os.environ.items() if name not in chosen}
    return {**kept, "SYNOVIA_PREBUILT": str(folder / "prebuilt"), "SYNOVIA_CACHE_DIR": str(folder / "cache"), **more}


@pytest.mark.parametrize(
    "command", [("arm7", "-t", "tool=0.4,0.1,0.5"), ("humanoid", "--goals", REACH, "--root", "free")]
)
def test_a_small_solve_does_not_wait_for_the_compiler(command: tuple[object, ...], tmp_path: Path) -> None:
    pytest.importorskip("numba")
    ran = run_apart("solve", *command, "--json", env=_without_compiled_kernels(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    assert (ran.data["status"], ran.data["compiled"]) == ("REACHED", False)
    assert not list((tmp_path / "cache").rglob("*.nbc"))
    _check_against_kinematics(sy.bundled(str(command[0])).with_root(ran.data["root"]), ran)


def test_a_solve_that_was_not_compiled_says_so(tmp_path: Path) -> None:
    ran = run_apart("solve", "arm7", "-t", "tool=0.4,0.1,0.5", env=_without_compiled_kernels(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    assert re.match(r"REACHED in \d+ steps, \d+ attempts?, [\d.]+ \S+ uncompiled \(lm\)", ran.out)


def _without_numba(folder: Path, error: str = "") -> dict[str, str]:
    """The environment of a clone without a compiler, or with one that raises an ImportError."""
    hidden = folder / "hidden"
    hidden.mkdir()
    if error:
        (hidden / "numba").mkdir()
        (hidden / "numba" / "__init__.py").write_text(f"raise ImportError({error!r})\n")
        (hidden / "numba-1.0.dist-info").mkdir()
        (hidden / "numba-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numba\nVersion: 1.0\n")
    else:
        (hidden / "sitecustomize.py").write_text("import sys; sys.modules['numba'] = None\n")
    path = os.pathsep.join([str(hidden), *filter(None, [os.environ.get("PYTHONPATH")])])
    return _without_compiled_kernels(folder, PYTHONPATH=path)


LITTLE = """
import os, subprocess, sys
from synovia.cli import main, uncompiled
uncompiled._WORK = uncompiled._LITTLE = 500.0
os.execve = os.execv = subprocess.Popen = None  # no other process
sys.exit(main())
"""


def _with_little_work(*command: object, env: dict[str, str]) -> Ran:
    """Run a command that soon needs the compiler."""
    done = subprocess.run(
        [sys.executable, "-c", LITTLE, *map(str, command)], capture_output=True, text=True, env=env, check=False
    )
    return Ran(done.returncode, done.stdout, re.sub(r"^Compiling .*\n", "", done.stderr, flags=re.MULTILINE))


def test_without_compiler_small_solves_run_and_others_say_what_to_install(tmp_path: Path) -> None:
    env = _without_numba(tmp_path)
    ran = run_apart("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--json", env=env)
    assert (ran.data["status"], ran.data["compiled"]) == ("REACHED", False)
    ran = _with_little_work("solve", "arm7", "-t", "tool=5,5,5", env=env)
    assert_refused(ran, "numba is not installed", "[jit]", "SYNOVIA_KERNELS=python", code=4)
    assert_refused(run_apart("doctor", "--warm", env=env), "cannot be compiled", "[jit]", code=4)
    assert "only 'synovia solve' works" in run_apart("doctor", env=env).out


@pytest.mark.slow
def test_a_solve_of_much_work_is_compiled_in_the_same_process(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    env = _without_compiled_kernels(tmp_path)
    del env["SYNOVIA_CACHE_DIR"]  # what was compiled before need not be compiled again
    ran = _with_little_work("solve", "arm7", "-t", "tool=5,5,5", "-o", tmp_path / "pose.json", "--json", env=env)
    assert (ran.code, ran.err) == (1, "")
    assert (ran.data["status"], ran.data["compiled"]) == ("UNREACHABLE", True)
    assert sy.load_pose(tmp_path / "pose.json", sy.bundled("arm7")).q.tolist() == list(ran.data["q"].values())


@pytest.mark.slow
def test_a_numba_that_does_not_work_says_why(tmp_path: Path) -> None:
    env = _without_numba(tmp_path, "Numba needs NumPy 2.2 or less")
    ran = _with_little_work("solve", "arm7", "-t", "tool=5,5,5", env=env)
    assert_refused(ran, "numba cannot be imported", "Numba needs NumPy 2.2 or less", code=4)
    state = run_apart("doctor", "--json", env=env).data
    extra = state["extras"]["jit"]
    assert (extra["packages"], extra["problem"]) == ({"numba": "1.0"}, "ImportError: Numba needs NumPy 2.2 or less")
    assert any("broken" in line for line in installation_text(state))


@pytest.mark.parametrize(("choice", "code"), [("nonsense", 3), ("none", 4), ("prebuilt", 4), ("x86_64_v9", 3)])
def test_kernels_that_cannot_be_chosen_name_the_variable(choice: str, code: int, tmp_path: Path) -> None:
    env = {**_without_compiled_kernels(tmp_path), "SYNOVIA_KERNELS": choice}
    ran = run_apart("solve", "arm7", "-t", "tool=0.4,0.1,0.5", env=env)
    assert_refused(ran, f"SYNOVIA_KERNELS='{choice}'", "Unset SYNOVIA_KERNELS", code=code)


def test_where_kernels_cannot_be_chosen_doctor_does_not_ask_for_a_compiler(tmp_path: Path) -> None:
    env = {**_without_compiled_kernels(tmp_path), "SYNOVIA_KERNELS": "nonsense"}
    ran = run_apart("doctor", env=env)
    assert "unset SYNOVIA_KERNELS" in ran.out
    assert "only 'synovia solve'" not in ran.out


def test_a_miss_does_not_wait_for_the_compiler(tmp_path: Path) -> None:
    env = _without_compiled_kernels(tmp_path)
    ran = run_apart("solve", "arm7", "-t", "tool=5,5,5", "--json", env=env)
    assert (ran.code, ran.data["status"], ran.data["compiled"]) == (1, "UNREACHABLE", False)
    alone = run("solve", "arm7", "-t", "tool=5,5,5", "--json")
    assert ran.data["goals"][0]["position_error"] == pytest.approx(alone.data["goals"][0]["position_error"], rel=1e-3)
    assert not list((tmp_path / "cache").rglob("*.nbc"))


@pytest.mark.jit
def test_what_takes_much_work_is_compiled(tmp_path: Path) -> None:
    env = _without_compiled_kernels(tmp_path)
    env["SYNOVIA_CACHE_DIR"] = os.environ.get("SYNOVIA_CACHE_DIR", "")  # what other tests have compiled serves here
    pose = tmp_path / "pose.json"
    ran = _with_little_work("solve", "arm7", "-t", "tool=5,5,5", "--json", "-o", pose, env=env)
    assert (ran.code, ran.err) == (1, "")
    assert (ran.data["status"], ran.data["compiled"]) == ("UNREACHABLE", True)
    assert pose.exists()  # written once: a file that is there would be refused


@cache
def _loaded(path: Path) -> sy.Skeleton:
    return sy.load_skeleton(path)


@pytest.mark.compiled
@pytest.mark.parametrize(("model", "solver"), [*product(REAL, GENERAL), (LARGE, "lm")])
def test_real_models(model: str, solver: str, shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / model
    skeleton = _loaded(path)
    pose = skeleton.random_pose(2)
    tip = _far_tip(skeleton, pose)
    ran = run("solve", path, "-t", f"{tip}={_text(pose.positions[tip])}", "--solver", solver, "--json")
    assert ran.code == 0, (ran.out[:1500], ran.err)
    assert ran.data["status"] == "REACHED"
    assert ran.data["goals"][0]["position_error"] < 1e-3 * ran.data["reach"]
    _check_against_kinematics(skeleton, ran)
    far = pose.positions[tip] + 10.0 * skeleton.size
    ran = run("solve", path, "-t", f"{tip}={_text(far)}", "--solver", solver, "--json", "-o", tmp_path / "best.json")
    assert ran.code == 1
    assert ran.data["status"] == "UNREACHABLE"
    assert ran.data["goals"][0]["position_error"] > 9.0 * skeleton.size
    assert json.loads((tmp_path / "best.json").read_text())["q"] == ran.data["q"]
    _check_against_kinematics(skeleton, ran)


WALL = """schema = "synovia.world/1"
[[obstacle]]
name = "wall"
shapes = [{ kind = "box", center = [0.45, 0, 0.4], size = [0.02, 0.3, 0.8] }]
"""


@pytest.fixture
def wall(tmp_path: Path) -> Path:
    """A file of a wall that stands in the way of the arm."""
    path = tmp_path / "wall.toml"
    path.write_text(WALL)
    return path


@pytest.mark.parametrize(("words", "least"), [((), 0.0), (("--clearance", "0.02"), 0.02)])
def test_a_world_is_kept_clear_of(wall: Path, words: tuple[str, ...], least: float) -> None:
    """With ``--clearance`` by that distance; the contacts are listed and the nearest pair is named."""
    behind = ("solve", "arm7", "-t", "tool=0.6,0.1,0.4")
    ran = run(*behind, "--world", wall, *words, "--json")
    assert (ran.code, ran.data["solver"]) == (0, "full-body")
    contacts = ran.data["contacts"]
    assert contacts[0]["distance"] >= least
    assert any("wall" in contact["pair"] for contact in contacts)
    assert all(len(contact["points"]) == 2 and len(contact["normal"]) == 3 for contact in contacts)
    assert "Nearest: " in run(*behind, "--world", wall, *words).out
    assert run(*behind, "--json").data["contacts"] == []
    pose = sy.bundled("arm7").rest_pose().with_values(ran.data["q"])
    gaps = [
        contact.distance
        for link, shapes in pose.skeleton.shapes.items()
        for shape in shapes
        for contact in sy.load_world(wall).distances(shape, transform=pose.transform(link)).values()
    ]
    assert min(gaps) >= least


def test_clearance_goals_of_files_have_the_world(wall: Path, tmp_path: Path) -> None:
    """They take the place of the goal that ``--world`` would add; without it, they say what they need."""
    goals = tmp_path / "goals.toml"
    sy.write_goals([sy.PositionGoal("tool", (0.6, 0.1, 0.4)), sy.ClearanceGoal(0.02)], goals)
    ran = run("solve", "arm7", "-g", goals, "--world", wall, "--json")
    assert [goal["kind"] for goal in ran.data["goals"]] == ["position", "clearance"]
    assert ran.data["goals"][1]["position"] is None
    assert min(contact["distance"] for contact in ran.data["contacts"] if "wall" in contact["pair"]) >= 0.02
    with goals.open("a") as file:
        file.write('pairs = ["world"]\n')
    assert_refused(run("solve", "arm7", "-g", goals), "--world")


def test_a_body_without_shapes_may_get_some(tmp_path: Path) -> None:
    """The error says how; the body needs no masses."""
    path = tmp_path / "chain.bvh"
    chain = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0, 2, 0), (0, 3, 0)])
    sy.formats.write_bvh(sy.Motion(chain, chain.rest_q[None], 30.0), path)
    tip = sy.load_skeleton(path).joint_names[-1]
    words = ("solve", path, "-t", f"{tip}=1,1.5,0", "--clearance", "0.01")
    assert_refused(run(*words), "--shapes")
    assert run(*words, "--shapes", "--json").data["contacts"]


def test_tables_keep_clear_of_a_world(wall: Path, tmp_path: Path) -> None:
    """The columns of a table tell the goals beside the clearance."""
    table, answers = tmp_path / "table.csv", tmp_path / "answers.csv"
    table.write_text("tool.x,tool.y,tool.z\n0.6,0.1,0.4\n0.6,-0.1,0.4\n")
    ran = run("solve", "arm7", "--targets", table, "--world", wall, "-o", answers, "--json")
    assert ran.data["status"] == {"REACHED": 2}
    assert "clearance.position_error" in answers.read_text()


def test_prove_decides_a_miss():
    """With ``--prove``, a miss within the length of the arm is proved; without, it is not."""
    at = ("solve", "arm7", "-t", "tool=0.9,0.5,0.55", "--json")
    plain, proved = run(*at), run(*at, "--prove")
    assert plain.data["status"] != "UNREACHABLE"
    assert plain.data["proof"] is None
    assert proved.data["status"] == "UNREACHABLE"
    nearest = proved.data["proof"]["nearest"]
    assert 0.0 < nearest <= proved.data["goals"][0]["position_error"]
    assert proved.data["goals"][0]["position_error"] == plain.data["goals"][0]["position_error"]
    assert "No pose within the joint limits brings 'tool' nearer than" in " ".join(proved.data["explanation"])
    assert proved.data["conflict"] is None  # there is only one goal


def test_prove_names_goals_that_exclude_each_other():
    """The elbow is within reach alone, and so is the tool; together they are not."""
    two = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "-t", "joint6=-0.4,0.1,0.5", "--prove", "--json")
    assert set(two.data["conflict"]["goals"]) == {"tool", "joint6"}
    plain = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "-t", "joint6=-0.4,0.1,0.5", "--prove")
    assert re.search("that meets '(tool|joint6)' brings|meets 'tool' and 'joint6' together", plain.out)
    assert len(re.findall("No pose within the joint limits", plain.out)) == 1  # each claim is said once
