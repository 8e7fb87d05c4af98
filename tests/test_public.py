"""The public face: every name loads, is documented, and is what the list says."""

import inspect
import json
import pickle
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from enum import EnumMeta
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import synovia as sy
from synovia import lazy, notebook
from synovia.arguments import options_in
from synovia.cli.commands.bench import Bench
from synovia.cli.commands.learn import Learn
from synovia.cli.commands.live import Live
from synovia.cli.commands.plot import Plot
from synovia.cli.commands.show import Inspect
from synovia.cli.commands.view import View
from synovia.draw.picture import DrawOptions
from synovia.ik.compiled import Options
from synovia.jobs import verb, verb_names
from synovia.jobs.job import Running
from synovia.jobs.options import options_of
from synovia.lerobot import BodyToJoints, Kinematics
from synovia.retargeting.options import HandOptions, LiveOptions, RetargetOptions
from synovia.text import Report

FOLDERS = ("batch.", "jobs.", "streams.")  # tested by themselves
PUBLIC = {name: thing for name, thing in lazy.public_names(sy).items() if not name.startswith(FOLDERS)}


def test_few_names_stand_on_top():
    assert len(sy.__all__) <= 95


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_documented(name):
    thing = PUBLIC[name]
    assert name.partition(".")[0] in dir(sy)
    if name not in ("Rotation", "solvers", "skeletons.Limit"):  # SciPy's, a table, and a union
        assert ">>> " in (inspect.getdoc(thing) or ""), f"{name}: no example"
    if inspect.isclass(thing) and thing.__module__.startswith("synovia"):
        for member, value in vars(thing).items():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"


@pytest.mark.parametrize("name", [name for name in sy.__all__ if name.endswith("Goal")])
def test_a_goal_documents_every_argument_once_also_those_that_all_goals_share(name):
    goal = getattr(sy, name)
    described = re.findall(r"^    (\w+): ", inspect.getdoc(goal).split("Args:\n")[1].split("\n\n")[0], re.MULTILINE)
    assert sorted(described) == sorted(inspect.signature(goal).parameters)


def test_the_registry_is_not_hidden_by_a_module():
    code = "import synovia as sy; sy.IK; import synovia.solver; print(*sorted(sy.solvers))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {"ccd", "fabrik", "lm"} <= set(out.split())


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match=r"no attribute 'solv'$"):
        _ = sy.solv


@pytest.mark.parametrize("name", [name for name in PUBLIC if "." in name and name.rpartition(".")[2] not in PUBLIC])
def test_the_error_for_a_name_of_a_module_says_which_module_has_it(name):
    with pytest.raises(AttributeError, match=rf"use synovia\.{re.escape(name)}$"):
        getattr(sy, name.rpartition(".")[2])


@pytest.mark.parametrize(("module", "name"), [(sy, "Command"), (sy.live, "LivePose"), (sy.hands, "HandPose")])
def test_the_error_for_a_former_name_says_what_it_is_now(module, name):
    with pytest.raises(AttributeError, match=rf"'{name}'; use synovia\.live\.Tick$"):
        getattr(module, name)
    with pytest.raises(AttributeError, match=r"no attribute 'Comand'$"):
        _ = module.Comand


def test_the_reference_has_every_public_name_once():
    page = (Path(__file__).parents[1] / "docs/api/index.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   synovia\.([\w.]+)$", page, re.MULTILINE)
    expected = {name for name in PUBLIC if name not in ("Rotation", "solvers", "__version__")}
    expected -= {name for name in PUBLIC if "." in name and name.rpartition(".")[2] in PUBLIC}  # errors on top as well
    assert sorted(listed) == sorted(expected)


def test_a_motion_and_a_skeleton_are_kept(tmp_path):
    body = sy.bundled("quadruped")
    motion = sy.Motion(body, [body.random_pose(k).q for k in range(3)], 30.0)
    sy.formats.write_bvh(motion, tmp_path / "clip.bvh")
    assert sy.load_motion(tmp_path / "clip.bvh").q.shape[0] == 3
    sy.formats.write_skeleton(body, tmp_path / "body.toml")
    assert sy.load_skeleton(tmp_path / "body.toml").joint_names == body.joint_names


def test_a_pose_is_kept_and_never_overwritten_unasked(tmp_path):
    arm = sy.bundled("arm7")
    pose, path = arm.random_pose(3), tmp_path / "pose.json"
    sy.save_pose(pose, path)
    assert (sy.load_pose(str(path), arm).q == pose.q).all()
    with pytest.raises(sy.errors.FileError, match="file exists"):
        sy.save_pose(arm.rest_pose(), path)
    assert (sy.load_pose(path, arm).q == pose.q).all()
    sy.save_pose(arm.rest_pose(), path, force=True)
    assert (sy.load_pose(path, arm).q == arm.rest_pose().q).all()
    assert [entry.name for entry in tmp_path.iterdir()] == ["pose.json"]


ARM = sy.bundled("arm7")
REPRS = {
    "Skeleton('arm7', 11 joints, 7 degrees of freedom)": ARM,
    "Joint('knee', parent='hip', kind=Kind.HINGE, limit=Interval(lower=0, upper=2))": sy.Joint(
        "knee", "hip", sy.Kind.HINGE, axis=(1, 0, 0), limit=sy.Interval(0, 2)
    ),
    "Mimic('knee', ratio=-0.5)": sy.Mimic("knee", -0.5),
    "PositionGoal('tool', position=(0.4, 0.1, 0.5))": sy.PositionGoal("tool", (0.4, 0.1, 0.5)),
    "PoseGoal('tool', weight=2, offset=(0, 0, 0.1))": sy.PoseGoal("tool", weight=2.0, offset=(0, 0, 0.1)),
    "RotationGoal('tool', rotation=<array (3, 3)>, priority=1)": sy.RotationGoal("tool", np.eye(3), priority=1),
    "AimGoal('tool', offset=(0, 0, 0.2), axis=(1, 0, 0))": sy.AimGoal("tool", axis=(1, 0, 0), offset=(0, 0, 0.2)),
    "DirectionGoal('tool', direction=(0, -1, 0))": sy.DirectionGoal("tool", direction=(0, -2, 0)),
    "DistanceGoal('a', other='b', maximum=0.3)": sy.DistanceGoal("a", "b", maximum=0.3),
    "Fabrik(attempts=1)": sy.Fabrik(attempts=1),
    "LevenbergMarquardt(null_space=NullSpace())": sy.LevenbergMarquardt(null_space=sy.NullSpace()),
    "IK('arm7', PositionGoal('tool'), Ccd(), root='free')": sy.IK(ARM, sy.PositionGoal("tool"), "ccd", root="free"),
    "IK('arm7', (PositionGoal('tool'), RestGoal()), LevenbergMarquardt())": sy.IK(
        ARM, [sy.PositionGoal("tool"), sy.RestGoal()]
    ),
    "Problems('arm7', tool; 5 problems, 4 frames)": sy.comparison.make_problems(ARM, count=5, frames=4),
}


@pytest.mark.parametrize("text", REPRS)
def test_objects_are_shown_in_a_few_words(text):
    assert repr(REPRS[text]) == text


def test_settings_are_shown_without_defaults():
    for solver in sy.solvers.values():
        assert repr(solver()) == f"{solver.__name__}()"


@pytest.mark.parametrize("thing", ["skeleton", "pose", "solution"])
def test_a_notebook_shows_a_picture_and_only_text_without_pillow(thing, monkeypatch, small_pictures):
    pytest.importorskip("PIL")

    def made():
        solution = sy.solve(sy.bundled("arm7"), sy.PositionGoal("tool", (0.4, 0.1, 0.5)))
        return {"skeleton": solution.pose.skeleton, "pose": solution.pose, "solution": solution}[thing]

    shown = made()
    assert shown._repr_png_().startswith(b"\x89PNG")
    page = shown._repr_html_()
    assert '<img alt="" width="720" src="data:image/png;base64,iVBOR' in page
    assert "reached in" in page if thing == "solution" else "arm7" in page
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    assert made()._repr_png_() is None
    assert made()._repr_html_() is None


DISPLAYED = """
import sys
import synovia as sy
arm = sy.bundled("arm7")
shown = {thing}
assert not {{"synovia.draw", "PIL"}} & set(sys.modules), "imported before a notebook shows anything"
for name in ("_ipython_display_", "_repr_mimebundle_", "_repr_svg_", "_ipython_canary_method_should_not_exist_"):
    assert not hasattr(shown, name), "a notebook would take it first"
print(shown._repr_png_()[:4], shown._repr_html_()[:5], "synovia.draw" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize("thing", ["arm", "arm.rest_pose()", "sy.solve(arm, sy.PositionGoal('tool', (0.4, 0.1, 0.5)))"])
def test_a_notebook_that_only_imports_the_package_shows_a_picture(thing):
    pytest.importorskip("PIL")
    code = DISPLAYED.format(thing=thing)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == r"b'\x89PNG' <pre> True"


def test_what_draws_for_notebooks_is_registered(monkeypatch):
    drawn = []

    def draw(thing, size):
        drawn.append(thing)
        return SimpleNamespace(save=lambda file, form: file.write(f"{form} {size}".encode()))

    monkeypatch.setattr(notebook, "_draw", [])
    notebook.draw_with(draw)
    skeleton = sy.bundled("arm7")
    assert skeleton._repr_png_() == b"PNG (720, 540)"
    assert drawn == [skeleton]
    notebook.draw_with(draw)
    assert skeleton._repr_png_()
    assert len(drawn) == 2, "a picture of the function before is kept"


def test_the_names_of_solvers_that_type_checkers_know_are_all_of_them():
    from typing import get_args

    from synovia.solver import SolverName

    assert set(get_args(SolverName)) == set(sy.solvers)


CALLABLES = [
    name
    for name, thing in PUBLIC.items()
    if callable(thing) and thing.__module__.startswith("synovia")
    if not issubclass(type(thing), EnumMeta) and not inspect.isabstract(thing)
]


@pytest.mark.parametrize("name", CALLABLES)
def test_an_argument_that_is_not_there_is_named_with_what_was_called(name):
    thing = PUBLIC[name]
    names = {name.rpartition(".")[2]} | {base.__name__ for base in getattr(thing, "__mro__", ())}
    with pytest.raises((sy.SynoviaError, TypeError)) as caught:
        thing(no_argument=1)
    assert any(re.search(rf"\b{one}\b", str(caught.value)) for one in names)


def test_arguments_that_are_missing_or_misspelt_are_told_with_the_name_of_ik():
    with pytest.raises(TypeError, match=r"^IK\.__init__\(\) missing 1 required positional argument: 'goals'"):
        sy.IK(sy.bundled("arm7"))
    with pytest.raises(TypeError, match=r"^IK\.__init__\(\) missing 2 required"):
        sy.IK()
    with pytest.raises(sy.errors.UnknownNameError, match=r"IK has no argument 'tolerence'. Did you mean 'tolerance'"):
        sy.IK(sy.bundled("arm7"), sy.PositionGoal("tool"), tolerence=(1, 1))


OBJECTS = ("skeleton", "motion", "pose", "tracked", "content")
DOORS = [
    (name, what)
    for name, found in PUBLIC.items()
    if inspect.isfunction(found)
    for what in inspect.signature(found).parameters
    if what in OBJECTS and (name, what) != ("comparison.make_problems", "pose")  # a bool
]


@pytest.mark.parametrize(("name", "what"), DOORS)
def test_functions_say_which_object_they_take(name: str, what: str, tmp_path: Path) -> None:
    arm = sy.bundled("arm7")
    path = tmp_path / {"formats.read_csv": "a.csv", "load_pose": "a.json"}.get(name, "a.png")
    given: dict[str, Any] = {
        "skeleton": arm, "motion": sy.Motion(arm, [arm.rest_pose().q] * 3, 30.0), "pose": arm.rest_pose(), "path": path,
        "goals": sy.PositionGoal("tool"), "model": "mujoco", "qpos": arm.rest_pose().q, "joints": ["tool"],
        "joint": "tool", "positions": np.zeros((2, 9, 3)),
    }  # fmt: skip
    needed = inspect.signature(PUBLIC[name]).parameters.values()
    arguments = {each.name: given.get(each.name) for each in needed if each.default is each.empty}
    with pytest.raises(sy.InputError, match=rf"{what}: expected a \w+.*, got Plain"):
        PUBLIC[name](**{**arguments, what: Plain()})


class Plain:
    """No object of the package."""


# Names of options, each with what it means wherever a user meets it.
OPTIONS = {
    "blend": {"int", "int | None"},  # frames
    "deadline": {"float | None"},  # seconds
    "fade": {"float"},  # seconds
    "feet": {"Sequence[str | int] | None"},  # joints
    "force": {"bool"},
    "fps": {"float", "float | None"},
    "hold_feet": {"bool"},
    "joint_map": {"Mapping[str, tuple[Any, Any]] | None"},
    "lock_feet": {"bool"},
    "meters_per_unit": {"float | None"},
    "moving": {"Iterable[str | int] | None", "Iterable[Name] | None"},
    "priority": {"int", "int | None"},
    "progress": {"Progress | None"},
    "rate": {"float"},  # ticks per second
    "rest": {"Rest | None", "Array"},  # a pose; the transform of a joint at rest
    "seed": {"int"},
    "side": {"str | None"},
    "solver": {"Solver | SolverName | None", "Solver | str | None"},
    "threads": {"int | None"},
    "tolerance": {
        "tuple[float, float] | None",
        "tuple[float, float]",
        "float",
    },  # length and radians; a CustomGoal has no unit
    "velocity": {"Any", "float | None"},  # as in Motion.slowed; of a joint in its file
    "weight": {"float", "float | ArrayLike"},
    "world": {"World | None", "World", "World | str | Path | None"},
}
FORMER = {"beside", "jobs", "watch"}  # next_to, threads, progress
CALLED = [
    (name, inspect.signature(thing))
    for name, thing in PUBLIC.items()
    if inspect.isfunction(thing)
    or (
        inspect.isclass(thing) and thing.__module__.startswith("synovia") and not name.startswith(("results.", "live."))
    )
] + [
    (f"{name}.{method}", inspect.signature(member))
    for name in ("IK", "LiveRetarget", "Motion", "Servo", "Skeleton", "World", "hands.LiveHand")
    for method, member in inspect.getmembers(PUBLIC[name], inspect.isfunction)
    if not method.startswith("_") or method == "__init__"
]


@pytest.mark.parametrize(("name", "signature"), CALLED, ids=[name for name, _ in CALLED])
def test_an_option_has_one_meaning_everywhere(name: str, signature: inspect.Signature) -> None:
    assert not FORMER & signature.parameters.keys()
    for option in OPTIONS.keys() & signature.parameters.keys():
        kind = str(signature.parameters[option].annotation).strip("'")
        kind = re.sub(r"\b(?:synovia|typing|collections|pathlib)(?:\.\w+)*\.", "", kind)
        assert kind in OPTIONS[option], f"{name}({option}: {kind})"


def declared(thing: Any) -> set[str]:
    """Return the options that a function or a constructor declares by itself, and not by a group."""
    function = thing.__init__ if inspect.isclass(thing) else thing
    usual = len(function.__defaults__ or ())
    code = function.__code__
    names = code.co_varnames[code.co_argcount - usual : code.co_argcount]
    return {*names, *(function.__kwdefaults__ or {})} - {"force", "fps", "name", "progress", "threads"}


def test_no_two_functions_declare_the_same_options() -> None:
    """Functions with common options share a group, see ``arguments.takes``."""
    every = {
        name: declared(thing)
        for name, thing in lazy.public_names(sy).items()
        if inspect.isfunction(thing)
        or (inspect.isclass(thing) and "__init__" in vars(thing) and not issubclass(thing, sy.SynoviaError))
        if thing.__module__.startswith("synovia") and not is_dataclass(thing)
    } | {"lerobot.BodyToJoints": declared(BodyToJoints), "lerobot.Kinematics": declared(Kinematics)}
    twice = {(a, b): every[a] & every[b] for a, b in combinations(every, 2) if len(every[a] & every[b]) > 3}
    assert twice.keys() <= {("Skeleton", "World")}  # both are files: source, up axis, unit and notes


# Names that mean something else in each of the classes that have them.
OF_THEIR_OWN = {
    "clearance", "clip", "feet", "file", "fps", "mirror", "origin", "output", "plot", "reach", "shapes", "side",
    "source",
}  # fmt: skip


def described_options() -> dict[str, dict[str, Any]]:
    """Return the description of each option by its name, then by the class that declares it."""
    jobs = [job for name in verb_names() for job in verb(name).jobs]
    flags = [Bench, Inspect, Learn, Live, Plot, Running, View]
    found: dict[str, dict[str, Any]] = {}
    for owner in {base for cls in (*jobs, *flags) for base in cls.__mro__ if is_dataclass(base)}:
        for one in fields(owner):
            if one.name in owner.__annotations__ and "option" in one.metadata:
                found.setdefault(one.name, {})[owner.__name__] = one.metadata["option"]
    return found


def test_no_two_jobs_or_commands_declare_the_same_option() -> None:
    """Fields of the same name share their description, or at least its values; see ``jobs.shared``."""
    for name, every in described_options().items():
        sources = {said.of.help if said.of else id(said.kind) for said in every.values()}
        assert len(sources) == 1 or name in OF_THEIR_OWN, (name, sorted(every))


GROUPS = {
    "Retarget": [RetargetOptions], "RetargetHand": [HandOptions], "Render": [DrawOptions], "Live": [LiveOptions],
    "_Solves": [Options],
}  # fmt: skip


def test_jobs_and_commands_have_the_options_of_their_functions() -> None:
    """An option that a function takes has its default, unit and help from there: ``synovia.options``."""
    every = described_options()
    for owner, groups in GROUPS.items():
        given = {name: usual for group in groups for name, (_, usual) in options_in(group).items()}
        common = [name for name in given if owner in every.get(name, ())]
        assert len(common) >= 4, owner
        for name in common:
            assert every[name][owner].of is given[name], (owner, name)


@pytest.mark.parametrize(
    ("job", "function"),
    [
        (sy.jobs.Follow, sy.IK.track), (sy.jobs.HoldFeet, sy.foot_lock), (sy.jobs.Edit, sy.edit),
        (sy.jobs.SolvePose, sy.solve), (Learn, sy.learn_starts),
        (sy.jobs.Render, sy.render), (Live, sy.LiveRetarget),
    ],
)  # fmt: skip
def test_other_options_have_the_defaults_of_their_functions(job: Any, function: Any) -> None:
    known = inspect.signature(function).parameters
    texts = {"size", "moving"}  # 960x540 is (960, 540), and no joints are None
    for name, said, default in options_of(job):
        usual = known[name].default if name in known and not said.required else inspect.Parameter.empty
        if usual is not inspect.Parameter.empty and name not in texts:
            assert default == usual, name


def test_every_report_is_one_kind_with_its_facts() -> None:
    """All ``report`` methods return a ``Report``: a text, and the same facts as JSON values."""
    kinds = {
        name: inspect.signature(thing.report).return_annotation
        for name, thing in lazy.public_names(sy).items()
        if inspect.isclass(thing) and hasattr(thing, "report")
    }
    assert {"results.Judgement", "results.Edited", "results.Retargeted", "hands.RetargetedHand"} <= kinds.keys()
    assert {name: kind for name, kind in kinds.items() if kind != "Report"} == {}
    body = sy.bundled("humanoid").with_root("free")
    still = sy.Motion(body, [body.rest_q] * 20, 30.0)
    arm = sy.bundled("arm7")
    for one in (
        sy.judge(still, still), sy.edit(still, sy.Layer({"left_hand": (0.0, 0.1, 0.0)}, relative=True, frames=(3, 9))),
        sy.retarget(still, sy.bundled("humanoid")), sy.shapes.self_pairs(arm), sy.shapes.shape_fit(body, points=500),
        sy.LiveRetarget(body, sy.bundled("humanoid"), rate=30),
    ):  # fmt: skip
        report = one.report()
        assert isinstance(report, Report)
        assert json.loads(json.dumps(report.to_object())) == report.to_object()
        assert (again := pickle.loads(pickle.dumps(report))) == report
        assert again.facts == report.facts
