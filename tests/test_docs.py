"""The pages of the documentation: their code and their commands run, and each page is whole.

Sphinx is not needed: `.ci/run docs` builds the site and checks its links.
"""

import ast
import contextlib
import io
import re
import shlex
import shutil
import tokenize
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from conftest import REPO
from synovia.cli import main
from synovia.comparison import ticks
from synovia.comparison.ticks import time_ticks
from synovia.diagnosis import reasons

DOCS = REPO / "docs"
MADE = {"api/names", "gallery", "made", "measured/results"}  # by the build
PAGES = [
    path.relative_to(DOCS).as_posix()
    for path in sorted(DOCS.rglob("*.md"))
    if not any(path.relative_to(DOCS).as_posix().startswith(f"{folder}/") for folder in MADE)
]
SCRIPTS = sorted((REPO / "examples" / "gallery").glob("*.py"))
LONG = {  # pages that take more than a few seconds
    "guides/commands.md",
    "guides/custom-goals.md",
    "guides/hands.md",
    "guides/motion.md",
    "solvers/full-body.md",
    "tutorials/character.md",
}
ALONE = {"index.md"}  # pages of which every block stands alone; on others each goes on from the one before
NOT_RUN = (
    "view",
    "doctor --warm",
    "--install-completion",
)  # pages in a browser; minutes of compiling; the user's shell


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text_of(page), re.DOTALL | re.MULTILINE)
    return [re.sub(f"^{indent}", "", code, flags=re.MULTILINE) for indent, code in found]


def commands(page: str) -> list[list[str]]:
    """Every command `synovia ...` of a page, in words."""
    lines = "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    found = [re.sub(r"^(\w+=\S+ )*(\.venv/bin/)?", "", line.strip()) for line in lines]
    calls = [line.removeprefix("synovia ") for line in found if line.startswith("synovia ")]
    return [shlex.split(call, comments=True) for call in calls if not call.startswith(NOT_RUN)]


WITH_CODE = [page for page in PAGES if blocks(page, "python")]
WITH_COMMANDS = [page for page in PAGES if commands(page)]


@pytest.fixture
def desk(tmp_path, monkeypatch, short_films, small_pictures):
    """A folder with the files that the pages name; what they make is small, and told from few trials."""
    monkeypatch.setattr(reasons, "_ATTEMPTS", 4)
    monkeypatch.setattr(reasons, "_MOST_LIMITS", 3)
    monkeypatch.setattr(ticks, "time_ticks", lambda bodies, count, watch: time_ticks(bodies, min(count, 50), watch))
    monkeypatch.setattr("synovia.comparison.ticks._WARM", 5)
    shutil.copytree(REPO / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("gallery"))
    for name in ("walk.bvh", "character.glb", "arm.urdf", "robot_hand.toml"):
        shutil.copy(REPO / "examples" / name, tmp_path)
    sy.formats.write_skeleton(sy.bundled("humanoid"), tmp_path / "robot.urdf")  # the content tells the format
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_is_something_to_check():
    assert len(PAGES) > 35
    assert len(WITH_CODE) > 15
    assert len(WITH_COMMANDS) >= 5
    assert len(SCRIPTS) >= 25


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_a_title_a_description_and_texts_for_pictures(page):
    text = text_of(page)
    head = re.match(r"---\ndescription: \"?(.+?)\"?\n---\n", text)
    assert head is not None, "no description"
    assert 30 <= len(head[1]) <= 200
    body = re.sub(r"^ *```.*?^ *```", lambda m: m[0] if "include" in m[0] else "", text, flags=re.DOTALL | re.MULTILINE)
    for included in re.findall(r"```{include} (\S+)", body):
        if "/made/" in included:  # when the site is built
            continue
        body += (DOCS / page).parent.joinpath(included).read_text(encoding="utf-8")
    body = re.sub(r"^ *```.*?^ *```", "", body, flags=re.DOTALL | re.MULTILINE)
    assert len(re.findall(r"^# \S", body, re.MULTILINE)) == 1
    assert all(alt.strip() for alt in re.findall(r"!\[([^\]]*)\]", body))


def marked(pages: list[str]) -> list[object]:
    return [pytest.param(page, marks=pytest.mark.slow) if page in LONG else page for page in pages]


@pytest.mark.slow
@pytest.mark.parametrize("page", marked(WITH_CODE))
def test_the_python_of_a_page_runs(page, desk):
    codes = blocks(page, "python")
    for code in codes if page in ALONE else ["\n".join(codes)]:
        names: dict[str, object] = {"sy": sy, "np": np, "check_claim": check_claim}
        exec(SETUP.get(page, ""), names)
        exec(compile(with_claims(code), page, "exec"), names)
        exec(CLAIMS.get(page, ""), names)


def claimed(comment: str) -> str | None:
    """The literal that a comment begins with, such as ``0.5`` in ``# 0.5: half of it``; None if it is prose."""
    for end in (len(comment), *(m.start() for m in reversed(list(re.finditer(r"[:;,] | \(", comment))))):
        with contextlib.suppress(ValueError, SyntaxError):
            ast.literal_eval(comment[:end].strip())
            return comment[:end].strip()
    return None


def claims_of(code: str) -> dict[int, str]:
    """The values that comments give, by line."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    found = {t.start[0]: claimed(t.string.lstrip("# ")) for t in tokens if t.type == tokenize.COMMENT}
    return {line: value for line, value in found.items() if value is not None}


def with_claims(code: str) -> ast.Module:
    """Code whose expressions are compared with the values that the comments beside them give."""
    tree, values = ast.parse(code), claims_of(code)
    for node in tree.body:
        if isinstance(node, ast.Expr) and node.end_lineno in values:
            text = ast.Constant(values[node.end_lineno])
            node.value = ast.Call(ast.Name("check_claim", ast.Load()), [node.value, text], [])
    return ast.fix_missing_locations(tree)


def check_claim(value: object, text: str) -> None:
    """A value, or its shape, is the one that a page gives, up to one unit of the last digit that the page shows."""
    wanted = ast.literal_eval(text)
    if isinstance(wanted, tuple) and np.shape(value) == wanted:
        return
    if not isinstance(wanted, (int, float, tuple, list)) or isinstance(wanted, bool):
        assert value == wanted, f"{value!r} is not {text}"
        return
    if isinstance(wanted, (tuple, list)) and not all(isinstance(one, (int, float)) for one in wanted):
        assert tuple(value) == tuple(wanted), f"{value!r} is not {text}"
        return
    digits = [len(part) for part in re.findall(r"\d\.(\d+)", text)]
    slack = 10.0 ** -max(digits) if digits else 1e-3
    assert np.shape(value) == np.shape(wanted), f"{value!r} is not {text}"
    assert np.allclose(np.asarray(value, float), wanted, rtol=0.0, atol=slack), f"{value!r} is not {text}"


def test_claims_are_found_and_checked():
    """The check of values in comments sees them, and fails where they are wrong."""
    code = "1 + 1  # 2\n'a', True  # 'a', True\n0.3331  # 0.333: a third\n(1, 2)  # a tuple\n2.0  # (for now)\n"
    assert claims_of(code) == {1: "2", 2: "'a', True", 3: "0.333"}
    exec(compile(with_claims(code), "page", "exec"), {"check_claim": check_claim})
    for wrong in ("1 + 1  # 3", "True  # False", "0.34  # 0.333", "(1.0, 2.0)  # (1.0, 2.5)", "[1]  # (1, 2)"):
        with pytest.raises(AssertionError):
            exec(compile(with_claims(wrong), "page", "exec"), {"check_claim": check_claim})
    assert sum(len(claims_of(code)) for page in WITH_CODE for code in blocks(page, "python")) > 12


@pytest.mark.slow
@pytest.mark.parametrize("page", marked(WITH_COMMANDS))
def test_the_commands_of_a_page_run(page, desk, capsys):
    names: dict[str, object] = {"sy": sy, "np": np}
    exec(SETUP.get(page, ""), names)
    for words in commands(page):
        code = main([*words, "--force"] if "-o" in words else words)  # pages write one file in several ways
        assert code in MAY_END.get(words[0], (0,)), (words, capsys.readouterr().err)


MAY_END = {"solve": (0, 1), "animate": (0, 1)}

# What the words of a page say of its results, beside the values in comments of its code.
CLAIMS = {
    "guides/hands.md": """
import dataclasses

assert "left index" in retargeted.report()
for name in ("left_index_2", "right_ring_2"):
    turns = [clip.q[0, clip.skeleton.q_slice(name)] for clip in (relaxed.motion, sy.retarget(walk, hero).motion)]
    assert np.abs(turns[1] - hero.rest_q[hero.q_slice(name)]).max() < 1e-9 < 0.05 < np.abs(turns[0] - turns[1]).max()
again = retargeted.motion
rows = [[one.index(f"left_index_{k}") for k in (1, 2, 3)] for one in (again.skeleton, fitted.skeleton)]
local = []
for motion, own in zip((again, fitted), rows):
    frames = motion.frames()[..., :9].reshape(60, -1, 3, 3)
    above = [motion.skeleton.parents[row] for row in own]
    local.append(np.swapaxes(frames[:, above], 2, 3) @ frames[:, own])
off = sy.Rotation.from_matrix((np.swapaxes(local[0], 2, 3) @ local[1]).reshape(-1, 3, 3)).magnitude()
assert np.degrees(np.median(off)) < 5.0
answer = sy.retarget_hand(points, robot, fps=30)
assert "pinches of thumb and index" in answer.report()
assert any("'ring', 'little'" in note for note in answer.notes)
assert np.abs(np.diff(answer.motion.q, axis=0)).max() * 30.0 <= 15.0 + 1e-6
assert sy.retarget_hand(points * (-1.0, 1.0, 1.0), robot, fps=30).mirrored
limits = [joint.limit for joint in robot.joints if joint.limit]
lower, upper = np.array([(limit.lower, limit.upper) for limit in limits]).T
assert ((lower <= answer.motion.q) & (answer.motion.q <= upper)).all()
joints = []
for joint in robot.joints:
    if joint.name.startswith("thumb") and joint.parent != "palm":
        rest = np.eye(4)
        rest[:3, 3] = 0.3 * joint.rest[:3, 3]
        joint = dataclasses.replace(joint, rest=rest)
    joints.append(joint)
short = robot.with_joints(joints)
missed = sy.retarget_hand(points, short, fps=30)
assert missed.pinches[0].distance > 1e-3
assert any(one.cause == "pinch" and "apart" in one.text for one in missed.findings)
gone = points.copy()
gone[5:8] = np.nan
assert any("not seen" in note for note in sy.retarget_hand(gone, robot, fps=30).notes)
assert sy.load_motion("hand.csv", skeleton=robot).q.shape == (60, 12)
""",
    "guides/setups.md": """
down_there = [one for name, one in locals().items() if isinstance(one, sy.Solution) and name != "missed"]
assert len(down_there) >= 6
assert not missed.reached and any("With all joints, the goals are met" in line for line in missed.explain())
assert all(one.reached for one in down_there)
trunk = sy.bundled("humanoid").rest_pose()
for name in ("spine", "chest"):
    assert np.allclose(spine_held.pose.matrix(name), trunk.matrix(name))
    assert np.allclose(arm_only.pose.matrix(name), trunk.matrix(name))
assert np.allclose(tip[:3], (0.4, 0.1, 0.4), atol=1e-4)
assert np.allclose(solution_placed.pose.position("base"), (1.0, 2.0, 0.5))
assert np.allclose(named.pose.rotation("tcp").as_matrix(), down.as_matrix(), atol=2e-3)
once = sy.solve(arm, sy.PoseGoal("tool", (0.4, 0.1, 0.4), down, offset=frame))
assert np.allclose(once.pose.transform("tool") @ frame, named.pose.transform("tcp"), atol=1e-3)
even = sy.solve(arm, [reach, sy.RestGoal(start)], "full-body", start=start)
assert abs(heavy.pose["joint1"] - start["joint1"]) < 0.5 * abs(even.pose["joint1"] - start["joint1"])
held = both.pose.matrix("left/tool").T @ (both.pose.position("right/tool") - both.pose.position("left/tool"))
assert np.allclose(held, (-0.3, 0, 0), atol=1e-3)
assert far.pose["cart/root_x"] > 2.0
""",
}

_CLIPS = """
import os

os.makedirs("clips", exist_ok=True)
sy.save_motion(sy.load_motion("walk.bvh")[:40], "clips/walk.bvh", force=True)
"""

# What a page takes as given, before its first block.
SETUP = {
    "guides/hands.md": """
person = sy.bundled("humanoid_hands")
own = sy.hands.hand_landmarks(person.rest_pose(), "right")
np.savez("hand.npz", joints=np.repeat(own[None], 60, axis=0))  # for the commands: the page makes its own
""",
    "guides/motion.md": """
import shutil
from pathlib import Path

TRACK = '''schema = "synovia.track/1"
fps = 10
[[goals]]
joint = "%s"
keys = [{ time = 0, position = [0.4, %s, 0.3] }, { time = 0.5, position = [0.5, %s, 0.4] }]
'''
Path("reach.toml").write_text(TRACK % ("left_hand", 1.2, 1.3))
Path("track.toml").write_text(TRACK % ("tool", 0.1, 0.2))
shutil.copy("walk.bvh", "other.bvh")
shutil.copy("walk.bvh", "dance.bvh")
"""
    + _CLIPS,
    "guides/edit.md": """
if "check_claim" not in locals():  # commands alone; the code of the page writes its own file
    raised = sy.Layer({"left_hand": (0.0, 0.1, 0.0)}, relative=True, frames=(30, 60), blend=9)
    sy.formats.write_layers(raised, "edit.toml")
    sy.save_world(sy.World([sy.Sphere(center=(0.5, 1.0, 0.5), radius=0.04)]), "post.toml")
"""
    + _CLIPS,
    "guides/world.md": """
if "check_claim" not in locals():  # commands alone; the code of the page writes the file itself
    sy.save_world(sy.World([sy.Box(center=(1, 0, 0.3), size=(0.5, 0.5, 0.6))], up="z"), "kitchen.toml")
    sy.save_world(sy.World({"step": sy.Box(center=(0, 0, 2), size=(9, 0.06, 2))}, up="y"), "stairs.toml")
""",
    "guides/keypoints.md": """
walk = sy.load_motion("walk.bvh")
walk = sy.Motion(walk.skeleton, walk.q[:24], walk.fps)  # a fit takes a second for a hundred frames
for name in ("model", "recorded"):
    sy.save_motion(walk, f"{name}.bvh")
joints = ["hips", "head", "left_hand", "right_hand", "left_foot", "right_foot"]
positions = walk.positions()[:, [walk.skeleton.index(name) for name in joints]]
heads = ",".join(f"{name}.{axis}" for name in joints for axis in "xyz")
rows = np.column_stack([walk.times, positions.reshape(len(walk), -1)])
np.savetxt("points.csv", rows, delimiter=",", header=f"time,{heads}", comments="")
""",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_has_a_title_and_makes_a_picture(script: Path):
    """The build of the site runs them."""
    text = script.read_text(encoding="utf-8")
    told = ast.get_docstring(ast.parse(text))
    assert told is not None
    title, line, *rest = told.splitlines()
    assert set(line) == {"="}
    assert len(line) == len(title)
    assert len(" ".join(rest).strip()) > 30
    assert re.search(r"""["'][\w-]+\.(png|gif)["']""", text)
