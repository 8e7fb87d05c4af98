"""Jobs: each option is described once; one input and a folder of one have the same answer; ledgers go on."""

import csv
import pickle
import runpy
import shutil
from typing import NamedTuple

import click
import numpy as np
import pytest

import synovia as sy
from cli_runs import assert_refused, run
from conftest import REPO
from synovia.batch.ledger import as_text, settings_hash
from synovia.batch.work import work_on
from synovia.cli.declare import command_of
from synovia.errors import InputError
from synovia.jobs import Running, UsageError, options, verb, verb_names
from synovia.jobs.base import Host
from synovia.jobs.job import running_options

EXAMPLES = REPO / "examples"
FRAMES = 12


class Inline:
    """An engine without processes."""

    def __init__(self, *_):
        pass

    def run(self, task, portions):
        task = pickle.loads(pickle.dumps(task))
        task.prepare()
        for portion in portions:
            yield work_on(task, portion)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with clips and models; pools run in this process, and a summary shows one small still of a result."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("synovia.batch.pool.Local", Inline)
    monkeypatch.setattr("synovia.jobs.clips._STILLS", 1)  # drawing takes far longer than the jobs
    monkeypatch.setattr("synovia.jobs.clips._PICTURE", (36, 48))
    walk = sy.load_motion(EXAMPLES / "walk.bvh")
    for name, first, count in (("walk", 0, FRAMES), ("other", FRAMES, FRAMES), ("brief", 0, 3)):
        sy.formats.write_bvh(sy.Motion(walk.skeleton, walk.q[first : first + count], walk.fps), f"{name}.bvh")
    chain = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0), (0.1, 2, 0)])  # no surface, to which shapes take seconds to fit
    sy.formats.write_bvh(sy.Motion(chain, np.tile(chain.rest_q, (3, 1)), walk.fps), "chain.bvh")
    for name in ("character.glb", "arm.urdf"):
        shutil.copy(EXAMPLES / name, name)
    names = ["hips", "head", "left_hand", "right_hand", "left_foot", "right_foot"]
    places = walk.positions()[:FRAMES, [walk.skeleton.index(name) for name in names]].reshape(FRAMES, -1)
    head = ",".join(f"{name}.{axis}" for name in names for axis in "xyz")
    rows = np.column_stack([walk.times[:FRAMES], places])
    np.savetxt("points.csv", rows, delimiter=",", header=f"time,{head}", comments="")
    return tmp_path


TRACK = """schema = "synovia.track/1"
fps = 10
[[goals]]
joint = "tool"
keys = [{ time = 0, position = [0.4, 0.1, 0.3] }, { time = 1, position = [0.4, -0.1, 0.3] }]
"""


LAYERS = """schema = "synovia.edit/1"
[[layers]]
frames = [3, 6]
blend = 2
relative = true
[[layers.targets]]
joint = "left_hand"
position = [0.0, 0.1, 0.0]
"""


WORLD = """schema = "synovia.world/1"
[[obstacle]]
name = "crate"
shapes = [{ kind = "box", center = [0.5, 0.2, 0], size = [0.4, 0.4, 0.4] }]
"""


LOOPS = """schema = "synovia.loops/1"
[[coupling]]
terms = { joint4 = 1, joint2 = [-0.5, 0.1] }
equals = -1.5
"""

ROD = """schema = "synovia.loops/1"
[[loop]]
first = "left_hand"
second = "right_hand"
kind = "distance"
distance = 0.6
"""


def coco():
    """Landmarks of a standing person, in the order of COCO, who raises both wrists."""
    person = np.array(
        [
            [0, 1.7, 0.1], [0.05, 1.72, 0.1], [-0.05, 1.72, 0.1], [0.08, 1.7, 0], [-0.08, 1.7, 0], [0.2, 1.45, 0],
            [-0.2, 1.45, 0], [0.25, 1.2, 0], [-0.25, 1.2, 0], [0.25, 0.95, 0], [-0.25, 0.95, 0], [0.1, 0.95, 0],
            [-0.1, 0.95, 0], [0.1, 0.5, 0.02], [-0.1, 0.5, 0.02], [0.1, 0.08, 0], [-0.1, 0.08, 0],
        ]
    )  # fmt: skip
    frames = np.tile(person, (FRAMES, 1, 1))
    frames[:, 9:11, 1] += np.linspace(0.0, 0.1, FRAMES)[:, None]
    return frames


class Case(NamedTuple):
    """Words of a command that give an option a value, where they differ from what a class of jobs has usually.

    Args:
        words: The words.
        source: The input.
        ending: Ending of the output.
        rest: The other words.
    """

    words: str
    source: str = ""
    ending: str = ""
    rest: str | None = None


# For each job its input, the ending of its output, and the other words of its command, then a value for each option.
USUAL = {
    "Convert": ("walk.bvh", ".npz", "convert {} --format {format}"),
    "Retarget": ("walk.bvh", ".npz", "retarget {} humanoid --format {format}"),
    "Edit": ("walk.bvh", ".npz", "edit {} --pin left_hand@3:6 --format {format}"),
    "HoldFeet": ("walk.bvh", ".npz", "animate {} --foot-lock --format {format}"),
    "Follow": ("walk.bvh", ".npz", "animate other.bvh --follow {} --format {format}"),
    "Fit": ("points.csv", ".npz", "animate walk.bvh --points {} --format {format}"),
    "Solve": ("table.csv", ".npz", "solve arm7 --targets {} --format {format}"),
    "Render": ("brief.bvh", ".png", "render {} --size 160x90 --format {format}"),
}
ON_A_HAND = "animate --points {} --preset hand --body humanoid_hands --format {format}"
SAMPLES: dict[str, dict[str, Case]] = {
    "Convert": {
        "loops": Case("--loops rod.toml"),
        "clip": Case("--clip 0"),
        "model": Case("--model other.bvh"),
        "trim": Case("--trim-tpose"),
        "into": Case("--into character.glb", "character.glb", ".glb"),
        "roles": Case("--roles roles.toml", ending=".toml"),
        "verify": Case("--verify"),
        "unit": Case("--unit m"),
    },
    "Retarget": {
        "loops": Case("--loops rod.toml"),
        "clip": Case("--clip 0"),
        "model": Case("--model other.bvh"),
        "trim": Case("--trim-tpose"),
        "roles": Case("--roles roles.toml"),
        "joint_map": Case("--map map.toml"),
        "save_map": Case("--save-map saved.toml"),
        "rest": Case("--rest first"),
        "up": Case("--up y"),
        "velocity": Case("--velocity left_lower_arm=0.5,left_hand=3"),
        "clearance": Case("--clearance none"),
        "shapes": Case("--shapes"),
        "plot": Case("--plot plot.svg"),
        "hold_feet": Case("--no-hold-feet"),
        "idle_hands": Case("--idle-hands relaxed"),
        "root_motion": Case("--root-motion hips"),
        "verify": Case("--verify"),
        "unit": Case("--unit m"),
        "world": Case("--world world.toml"),
    },
    "Edit": {
        "loops": Case("--loops rod.toml"),
        "clip": Case("--clip 0"),
        "model": Case("--model other.bvh"),
        "trim": Case("--trim-tpose"),
        "roles": Case("--roles roles.toml"),
        "layers": Case("--layers layers.toml", rest="edit {} --format {format}"),
        "pin": Case("--pin right_hand@2", rest="edit {} --format {format}"),
        "offset": Case("--offset hips=0,-0.05,0@4:9 --offset left_hand=0,9,0@4"),
        "blend": Case("--blend 2"),
        "hold_feet": Case("--offset hips=0,-0.05,0 --no-hold-feet"),
        "moving": Case("--offset left_hand=0,0.05,0@4:9 --moving left_upper_arm --moving left_lower_arm"),
        "tolerance": Case("--tol 1e-2,2"),
        "deadline": Case("--deadline 1000"),
        "part": Case("--slice 2:-1:2"),
        "reverse": Case("--reverse"),
        "speed": Case("--speed 0.5"),
        "velocity": Case("--velocity 1"),
        "acceleration": Case("--acceleration left_lower_arm=2"),
        "resample": Case("--resample 24"),
        "smooth": Case("--smooth 4"),
        "mirror": Case("--mirror"),
        "append": Case("--append other.bvh"),
        "append_clip": Case("--append other.bvh --append-clip 0"),
        "align": Case("--append other.bvh --align", rest="edit {} --format {format}"),
        "loop": Case("--loop"),
        "seam": Case("--loop --seam 2"),
        "in_place": Case("--in-place"),
        "origin": Case("--origin 1,0,2"),
        "heading": Case("--heading 90"),
        "foot_lock": Case("--foot-lock"),
        "world": Case("--world world.toml --shapes"),
        "clearance": Case("--clearance 0.01 --shapes"),
        "shapes": Case("--world world.toml --shapes", rest="edit {} --format {format}"),
        "verify": Case("--verify"),
        "unit": Case("--unit m"),
    },
    "HoldFeet": {
        "loops": Case("--loops rod.toml"),
        "clip": Case("--clip 0"),
        "model": Case("--model other.bvh"),
        "trim": Case("--trim-tpose"),
        "roles": Case("--roles roles.toml"),
        "feet": Case("--feet left_foot,right_foot"),
        "up": Case("--up y"),
        "fade": Case("--fade 0.2"),
        "verify": Case("--verify"),
        "unit": Case("--unit m"),
        "world": Case("--foot-lock --world world.toml"),
    },
    "Follow": {
        "loops": Case("--loops rod.toml"),
        "clip": Case("--clip 0"),
        "model": Case("--model other.bvh"),
        "trim": Case("--trim-tpose"),
        "roles": Case("--roles roles.toml"),
        "feet": Case("--foot-lock --feet left_foot,right_foot"),
        "up": Case("--up y"),
        "fade": Case("--foot-lock --fade 0.2"),
        "joints": Case("--joints left_hand,right_hand=left_hand"),
        "solver": Case("--solver dls"),
        "root": Case("--root fixed"),
        "moving": Case("--root fixed --moving left_upper_arm --moving left_lower_arm"),
        "candidates": Case("--candidates 2"),
        "both_ways": Case("--both-ways"),
        "smoothness": Case("--smooth 0.1"),
        "velocity": Case("--velocity 1"),
        "foot_lock": Case("--foot-lock"),
        "deadline": Case("--deadline 1000"),
        "tracks": Case("--root fixed", "track.toml", rest="animate arm.urdf --goals {} --format {format}"),
        "world": Case("--world world.toml", "track.toml", rest="animate arm7 --goals {} --format {format}"),
        "clearance": Case("--clearance 0.01", "track.toml", rest="animate arm7 --goals {} --format {format}"),
        "shapes": Case("--clearance 0.01 --shapes", "track.toml", rest="animate arm.urdf --goals {} --format {format}"),
        "verify": Case("--verify"),
        "unit": Case("--unit m"),
    },
    "Fit": {
        "loops": Case("--loops rod.toml"),
        "clip": Case("--clip 0", "other.bvh"),
        "model": Case("--model walk.bvh", "other.bvh"),
        "trim": Case("--trim-tpose", "other.bvh"),
        "roles": Case("--roles roles.toml"),
        "feet": Case("--foot-lock --feet left_foot,right_foot"),
        "up": Case("--preset coco --up y --foot-lock", "coco.npy", rest="animate --points {} --format {format}"),
        "fade": Case("--foot-lock --fade 0.2"),
        "body": Case("--body other.bvh", rest="animate --points {} --format {format}"),
        "preset": Case("--preset coco", "coco.npy", rest="animate --points {} --format {format}"),
        "rest": Case("--preset coco --rest rest", "coco.npy", rest="animate --points {} --format {format}"),
        "mirror": Case("--preset coco --mirror none", "coco.npy", rest="animate --points {} --format {format}"),
        "fps": Case("--fps 24"),
        "side": Case("--side left", "hand.npy", rest=ON_A_HAND),
        "joints": Case("--joints left_hand,right_hand,left_foot,right_foot,head,hips"),
        "foot_lock": Case("--foot-lock"),
        "verify": Case("--verify"),
        "unit": Case("--unit m"),
    },
    "Solve": {
        "goals": Case("--goals goals.toml"),
        "solver": Case("--solver dls"),
        "tolerance": Case("--tol 1e-3,2"),
        "root": Case("--root x"),
        "moving": Case("--moving joint1 --moving joint2 --moving joint4"),
        "starts": Case("--starts starts.npz"),
        "attempts": Case("--attempts 2"),
        "seed": Case("--seed 5"),
        "simd": Case("--no-simd"),
        "world": Case("--world world.toml"),
        "clearance": Case("--clearance 0.01"),
        "loops": Case("--loops loops.toml"),
        "shapes": Case("--clearance 0.01 --shapes", rest="solve arm.urdf --targets {} --format {format}"),
    },
    "Render": {
        "loops": Case("--loops rod.toml"),
        "clip": Case("--clip 0"),
        "model": Case("--model other.bvh"),
        "trim": Case("--trim-tpose"),
        "next_to": Case("--next-to other.bvh"),
        "titles": Case("--title walking"),
        "size": Case("--size 120x90"),
        "fps": Case("--fps 5", ending=".gif"),
        "view": Case("--view 30,10"),
        "theme": Case("--theme dark"),
        "look": Case("--look bones"),
        "angles": Case("--angles left_foot,head"),
        "captions": Case("--no-captions"),
        "shapes": Case("--shapes", "chain.bvh"),
        "world": Case("--world world.toml"),
        "clearance": Case("--clearance 0.1 --shapes", "chain.bvh"),
    },
}
CLASSES = {job.__name__: job for name in verb_names() for job in verb(name).jobs}
GIVEN = [
    pytest.param(job, name, id=f"{job}-{name}")
    for job in USUAL
    for name in ["", *(name for name, said, _ in options.options_of(CLASSES[job]) if not said.positional)]
]


def hand_points():
    """Return landmarks of a left hand that closes, (FRAMES, 21, 3)."""
    body = sy.bundled("humanoid_hands")
    q = np.repeat(body.rest_q[None], FRAMES, axis=0)
    bend = np.linspace(0.0, 1.0, FRAMES)[:, None]
    for finger in sy.hand_of(body, "left").fingers[1:]:
        rows = [body.q_slice(body.index(name)).start for name in finger.flexion]
        q[:, rows] = bend * body.limits[1][rows]
    return sy.hands.hand_landmarks(sy.Motion(body, q, 30.0), "left")


def rows_of(folder):
    with (folder / "ledger.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize(("job", "option"), GIVEN)
def test_one_input_and_a_folder_of_one_have_the_same_answer(job, option, desk, monkeypatch):
    """Same bytes, same figures, same exit code, for every option of every job."""
    source, ending, line = USUAL[job]
    case = SAMPLES[job][option] if option else Case("")
    source, ending, line = case.source or source, case.ending or ending, case.rest or line
    (desk / "roles.toml").write_text('hips = "spine"\n')
    (desk / "track.toml").write_text(TRACK)
    (desk / "table.csv").write_text("tool.x,tool.y,tool.z\n0.4,0.1,0.5\n0.3,0.2,0.4\n9,0,0\n")
    (desk / "goals.toml").write_text('schema = "synovia.goals/1"\n[[goals]]\nkind = "position"\njoint = "tool"\n')
    (desk / "layers.toml").write_text(LAYERS)
    (desk / "world.toml").write_text(WORLD)
    (desk / "loops.toml").write_text(LOOPS)
    (desk / "rod.toml").write_text(ROD)
    np.save("coco.npy", coco())
    if option == "side":
        np.save("hand.npy", hand_points())
    if option == "starts":
        sy.learn_starts(sy.bundled("arm7"), sy.PositionGoal("tool"), samples=64).save("starts.npz")
    if option == "joint_map":
        run("retarget", "walk.bvh", "humanoid", "--save-map", "map.toml")
    (desk / "in").mkdir()
    shutil.copy(source, desk / "in")
    outcomes = []
    do = CLASSES[job].do
    monkeypatch.setattr(CLASSES[job], "do", lambda *given: outcomes.append(do(*given)) or outcomes[-1])
    words = [*line.replace(" --format {format}", "").format(source).split(), *case.words.split()]
    one = run(*words, "-o", f"one{ending}")
    assert one.code in (0, 1), one
    words = [*line.format("in", format=ending[1:]).split(), *case.words.split()]
    many = run(*words, "-o", "out")
    said = {name: said for name, said, _ in options.options_of(CLASSES[job])}.get(option)
    if said is not None and said.single:
        assert_refused(many, f"expected a single {said.single} with this option.", code=2)
        return
    (row,) = rows_of(desk / "out")
    assert row["status"] == "done", row
    first, second = outcomes
    assert first.figures == second.figures
    assert {name: row[name] for name in first.figures if row.get(name)} == {
        name: text for name, value in first.figures.items() if (text := as_text(value))
    }
    assert many.code == one.code
    assert (desk / "out" / row["output"]).read_bytes() == (desk / f"one{ending}").read_bytes()


@pytest.mark.parametrize("name", verb_names())
def test_every_option_of_a_command_is_a_field_with_its_help(name):
    """The help says what the field says, and no option is described anywhere else."""
    described = verb(name)
    command = command_of(name, described)
    fields = {one: said for one, said, _ in (*described.options(), *running_options(described.jobs[0]))}
    for parameter in command.params:
        if parameter.name in ("sources", "as_json"):
            continue
        said = described.inputs[parameter.name] if parameter.name in described.inputs else fields.pop(parameter.name)
        assert parameter.help == said.help
        assert isinstance(parameter, click.Argument) == said.positional
        if isinstance(parameter, click.Option) and said.names:
            assert set(said.names) <= {*parameter.opts, *parameter.secondary_opts}
    assert not fields
    for job in described.jobs:
        for one, said, _ in options.options_of(job):
            assert f"{one}: {said.help}" in job.__doc__


def test_a_new_option_is_a_field():
    """Command, check, settings and docs come from it; ledgers that know nothing of it go on."""

    @options.described
    class Again(CLASSES["Convert"]):
        """Convert, several times."""

        times: int = options.option(
            default=1, help="How often.", kind=options.Number(1, 9, whole=True), metavar="N", unit="times"
        )

    plain = CLASSES["Convert"]()
    assert Again().settings() == plain.settings()
    assert Again(times=3).settings() == {**plain.settings(), "times": 3}
    with pytest.raises(InputError, match="times: expected a whole number from 1 to 9, got 10"):
        Again(times=10)
    command = command_of("convert", sy.jobs.verb("convert").__class__("", (Again,), verb("convert").sources))
    ctx = click.Context(command, info_name="convert", show_default=True)
    text = " ".join(command.get_help(ctx).split())
    assert "--times N How often. [default: 1]" in text
    assert "| `--times N` | `times` | 1 | How often. (times) |" in options.table_of(options.options_of(Again))
    assert "times: How often. (default: 1)" in Again.__doc__


# Hashes of settings in ledgers of version 0.1.0, and the jobs that have to find themselves in them.
LEDGERS = {
    "10df9df9b85bb647": lambda jobs: jobs.Convert(),
    "5d049c7f62bc62f0": lambda jobs: jobs.Convert(clip="0", trim=True, verify=True),
    "13d97c777cd31dc1": lambda jobs: jobs.Retarget("humanoid"),
    "718bf5f878f97cf5": lambda jobs: jobs.Retarget("humanoid", rest="first", up="y", velocity="3", hold_feet=False),
    "074f4ad0306be012": lambda jobs: jobs.Retarget(
        "humanoid",
        joint_map={"hips": ("Hips", "hips")},
        model="humanoid",
        rest="2",
        up="-z",
        velocity={"left_hand": 2.5},
        verify=True,
    ),
    "5ea35024a1eebeb8": lambda jobs: jobs.HoldFeet(),
    "b0b0ada66516759c": lambda jobs: jobs.HoldFeet(
        clip="walk", model="humanoid", trim=True, feet="a,b", up="y", fade=0.1, verify=True
    ),
    "cabec640bb8e2aa7": lambda jobs: jobs.Follow("humanoid"),
    "007fb69ec25cd3ac": lambda jobs: jobs.Follow(
        "humanoid",
        joints="left_hand=LeftHand",
        clip="1",
        model="humanoid",
        trim=True,
        solver="dls",
        root="x,y",
        foot_lock=True,
        up="y",
        candidates=2,
        both_ways=True,
        smoothness=0.1,
        velocity="20",
    ),
    "a44e530f3bc87bf0": lambda jobs: jobs.Follow("arm7", tracks=True),
    "af2407b9b40b8938": lambda jobs: jobs.Fit(preset="coco"),
    "9f23b7d39ec53a85": lambda jobs: jobs.Fit(
        "humanoid", joints={"hips": "Hips"}, foot_lock=True, feet=["a", "b"], mirror="x", up="y", fps=20
    ),
    "5f327e33ed274b15": lambda jobs: jobs.Solve("arm7"),
    "5d7c2248c2895b11": lambda jobs: jobs.Solve(
        "arm7", solver="dls", attempts=4, seed=3, tolerance="1e-3,1", root="x,y", simd=False
    ),
    "5393b068fc6436be": lambda jobs: jobs.Render(),
    "081abdce6f67a8e5": lambda jobs: jobs.Render(
        titles=["Hi"],
        size="120x90",
        fps=5,
        view="10,20",
        theme="dark",
        look="bones",
        captions=False,
        angles=["left_foot"],
    ),
}


@pytest.mark.parametrize("known", LEDGERS)
def test_ledgers_of_an_earlier_release_go_on(known, desk):
    job = LEDGERS[known](sy.jobs)
    settings = {"command": job.name, "version": "0.1.0", **job.settings()}
    assert settings_hash(settings) == known, settings


def test_the_tables_of_the_docs_come_from_the_fields():
    made = runpy.run_path(str(REPO / "docs" / "site_build" / "options.py"))["tables"]()
    for name in verb_names():
        assert f"## synovia {name}" in made
        for job in verb(name).jobs:
            for one, said, _ in options.options_of(job):
                assert f"| `{one}` |" in made
                assert said.help.replace("|", "\\|") in made


def test_an_object_does_one_input_or_a_folder(desk):
    (desk / "clips").mkdir()
    shutil.copy("walk.bvh", "clips")
    convert = sy.jobs.Convert(trim=True)
    seen = []
    outcome = convert("walk.bvh", "walk.npz", progress=lambda done, of: seen.append(done / of))
    assert (outcome.code, outcome.figures["frames"]) == (0, FRAMES)
    assert len(sy.load_motion("walk.npz")) == FRAMES
    with pytest.raises(sy.errors.FileError, match="file exists"):
        convert("walk.bvh", "walk.npz")
    convert("walk.bvh", "walk.npz", force=True)
    result = convert.run("clips", "out", format="npz", notice=seen.append)
    assert (result.inputs, result.done) == (1, 1)
    assert seen
    assert (desk / "out" / "walk.npz").read_bytes() == (desk / "walk.npz").read_bytes()
    assert convert.run(["clips"], "out", format="npz").same == 1
    with pytest.raises(UsageError, match="expected the format of the outputs"):
        convert.run("clips", "out")
    with pytest.raises(InputError, match="expected one of bvh"):
        convert.run("clips", "out", format="doc")
    with pytest.raises(UsageError, match="--roles: expected a single input with this option"):
        sy.jobs.Convert(roles="roles.toml").run("clips", "out", format="toml")


@pytest.mark.slow
def test_edits_of_the_command_are_those_of_python(desk):
    """Every option does what the function or the method of its name does, in the order of the help."""
    walk, other = sy.load_motion("walk.bvh"), sy.load_motion("other.bvh")
    (desk / "layers.toml").write_text(LAYERS)
    sy.save_motion(other.resample(60), "quick.npz")
    layers = sy.formats.read_layers("layers.toml")
    pin = sy.Layer(goals=[sy.PoseGoal("right_hand")], frames=(2, 5), blend=3)
    lower = sy.Layer({"hips": (0.0, -0.05, 0.0)}, frames=(4, 9), blend=3, relative=True)
    words = ["pin right_hand@2:5", "offset hips=0,-0.05,0@4:9", "blend 3"]
    for number, (given, want) in enumerate([
        (["layers layers.toml"], sy.edit(walk, layers).motion),
        (words, sy.edit(walk, [pin, lower]).motion),
        ([*words, "layers layers.toml"], sy.edit(walk, [*layers, pin, lower]).motion),
        ([*words[1:], "no-hold-feet"], sy.edit(walk, lower, feet=()).motion),
        (["slice 2:10:2"], walk[2:10:2]),
        (["slice -5:"], walk[-5:]),
        (["reverse"], walk.reversed()),
        (["speed 0.5"], walk.retimed(0.5)),
        (["velocity 1", "acceleration 9"], walk.slowed(velocity=1.0, acceleration=9.0)),
        (["resample 24"], walk.resample(24)),
        (["smooth 4"], walk.smoothed(4)),
        (["mirror"], walk.mirrored()),
        (["append other.bvh"], sy.concatenate([walk, other])),
        (["append other.bvh", "seam 3", "align"], sy.concatenate([walk, other], blend=3, align=True)),
        (["append quick.npz"], sy.concatenate([walk, other.resample(60).resample(walk.fps)])),
        (["append other.bvh", "append walk.bvh"], sy.concatenate([walk, other, walk])),
        (["loop"], walk.looped()),
        (["loop", "seam 2", "foot-lock"], walk.looped(2, lock_feet=True)),
        (["in-place"], walk.in_place()),
        (["origin 1,0,2", "heading 90"], walk.moved(origin=(1, 0, 2), heading=np.pi / 2)),
        (["foot-lock"], sy.foot_lock(walk).motion),
        (["in-place", "foot-lock", "origin 1,0,2"], sy.foot_lock(walk.moved(origin=(1, 0, 2))).motion.in_place()),
        (["mirror", "slice 3:", "reverse", "resample 60"], walk[3:].reversed().resample(60).mirrored()),
    ]):  # fmt: skip
        options_given = [part for word in given for part in f"--{word}".split(" ", 1)]
        answer = run("edit", "walk.bvh", *options_given, "-o", f"{number}.npz")
        assert answer.code == 0, (given, answer)
        made = sy.load_motion(f"{number}.npz")
        np.testing.assert_array_equal(made.q, want.q, err_msg=str(given))
        assert made.fps == want.fps


def test_a_clip_of_a_file_with_several_is_chosen_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    body = sy.load_skeleton(EXAMPLES / "character.glb")
    still = sy.Motion(body, [body.rest_q] * 4, 30.0, name="still")
    q = np.array(still.q)
    q[:, body.q_slice("head")] = sy.Rotation.from_rotvec((0.4, 0.0, 0.0)).as_quat()
    nods = sy.Motion(body, q, 30.0, name="nods")
    sy.save_motion(still, "one.glb", into=EXAMPLES / "character.glb")
    sy.save_motion(nods, "both.glb", into="one.glb")
    assert run("edit", "one.glb", "--append", "both.glb", "--append-clip", "nods", "-o", "two.npz").code == 0
    joined = sy.load_motion("two.npz")
    assert np.abs(joined.positions() - sy.concatenate([still, nods]).positions()).max() < 1e-5
    reader, host = sy.jobs.Render(), Host()
    shown, beside = reader.read_pair("one.glb", "both.glb", host)
    assert (shown.name, beside.name) == ("still", "still")  # though "nods" was written last


def test_an_edit_tells_what_its_tools_note(desk):
    """Which frames a loop keeps, and where none fit, is not in the verdict."""
    answer = run("edit", "walk.bvh", "--loop", "-o", "loop.bvh")
    notes = sy.load_motion("walk.bvh").looped().notes
    assert notes
    assert all(note in answer.err for note in notes)


def test_an_edit_tells_that_its_clip_was_no_better(desk):
    walk = sy.load_motion("walk.bvh")
    q = np.array(walk.q)
    q[6:, walk.skeleton.q_slice("left_upper_arm")] = sy.Rotation.from_rotvec((0.0, 0.0, 2.5)).as_quat()  # it jumps
    sy.save_motion(sy.Motion(walk.skeleton, q, walk.fps), "jump.bvh")
    assert ", as it was before the edit" in sy.jobs.Edit(mirror=True)("jump.bvh").report()
    assert "before the edit" not in sy.jobs.Edit(offset=["left_hand=0,9,0@3:6"])("walk.bvh").report()


@pytest.mark.parametrize("given", [{"offset": ["hips=0,-0.05,0"]}, {"loop": True, "foot_lock": True}])
def test_an_edit_reports_its_progress(desk, given):
    seen = []
    sy.jobs.Edit(**given)("walk.bvh", progress=lambda done, of: seen.append(done / of))
    assert len(seen) > 2
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_an_edit_tells_what_it_misses(desk):
    outcome = sy.jobs.Edit(offset=["left_hand=0,9,0@3:6"], reverse=True)("walk.bvh", "far.npz")
    assert (outcome.code, outcome.figures["missed"], outcome.figures["verdict"]) == (1, 4, "failed")
    told = outcome.report().to_object()
    assert told["schema"] == "synovia.edited/1"
    assert told["edit"]["missed"] == [3, 4, 5, 6]
    assert told["edit"]["up"] == "y"
    (moved,) = told["edit"]["moved"]
    assert moved["joint"] == "left_hand"
    assert moved["length"] > 0.5
    assert "4 frames miss a goal" in outcome.report()
    assert sy.jobs.Edit(offset=["left_hand=0,9,0@3:6"], part="7:")("walk.bvh").code == 0  # they are cut off
    for options_given, text in (
        ({}, "expected a change"),
        ({"blend": 3, "loop": True}, "--blend: expected --pin or --offset"),
        ({"align": True, "loop": True}, "--align: expected --append"),
        ({"seam": 3, "mirror": True}, "--seam: expected --append or --loop"),
    ):
        with pytest.raises(UsageError, match=text):
            sy.jobs.Edit(**options_given)("walk.bvh")
    with pytest.raises(InputError, match="part: expected FIRST:END"):
        sy.jobs.Edit(part="3")
    with pytest.raises(InputError, match="expected at least one of 12 frames"):
        sy.jobs.Edit(part="20:30")("walk.bvh")
    with pytest.raises(sy.SynoviaError, match="nobody"):
        sy.jobs.Edit(pin=["nobody@3:6"])("walk.bvh")


def test_feet_are_those_that_a_file_of_roles_names(desk):
    (desk / "toes.toml").write_text('left_foot = "left_hand"\nright_foot = "right_hand"\n')
    own = sy.jobs.HoldFeet(up="y")("walk.bvh", "own.npz")
    hands = sy.jobs.HoldFeet(roles="toes.toml", up="y")("walk.bvh", "hands.npz")
    assert own.figures["slide_before"] != hands.figures["slide_before"]
    (desk / "wrong.toml").write_text('left_foot = "nobody"\n')
    with pytest.raises(sy.SynoviaError, match="nobody"):
        sy.jobs.HoldFeet(roles="wrong.toml")("walk.bvh", "wrong.npz")


def test_a_pose_is_solved_with_the_options_of_the_command(desk):
    solve = sy.jobs.SolvePose(positions={"tool": (0.4, 0.1, 0.5)}, rotations="tool=xyz:180,0,0")
    outcome = solve("arm7", "pose.json")
    assert (outcome.code, outcome.result.status.name) == (0, "REACHED")
    assert outcome.report().startswith("REACHED in ")
    assert outcome.report().to_object()["schema"] == "synovia.solve/1"
    assert "\x1b" not in outcome.report()
    assert sy.load_pose("pose.json", sy.bundled("arm7")).position("tool") == pytest.approx((0.4, 0.1, 0.5), abs=1e-3)
    with pytest.raises(UsageError, match="expected at least one target"):
        sy.jobs.SolvePose()("arm7")
    with pytest.raises(UsageError, match="--seed: expected a solver with seed"):
        sy.jobs.SolvePose(positions={"left_hand": (0, 1, 0)}, solver="two-bone", seed=3)("humanoid")


@pytest.mark.compiled
def test_a_body_stands_while_it_reaches(desk):
    """``--standing`` takes the same goals as ``sy.standing_goals``, before those that are given."""
    body = sy.with_body_masses(sy.load_skeleton("character.glb"))
    target = np.add(body.rest_pose().position("left_hand"), (0.0, -0.1, 0.2))
    solve = sy.jobs.SolvePose(positions={"left_hand": target}, standing=True)
    solution = solve("character.glb", "pose.json").result
    goals = [*sy.standing_goals(body), sy.PositionGoal("left_hand", target, priority=1)]
    np.testing.assert_array_equal(solution.q, sy.solve(body, goals, "full-body", root="free").q)
    assert solution.reached
    answer = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--standing")
    assert answer.code == 3
    assert "--roles" in answer.err
    (desk / "table.csv").write_text("left_hand.x,left_hand.y,left_hand.z\n0.4,1,0.5\n")
    refused = run("solve", "humanoid", "--targets", "table.csv", "--standing", "-o", "answers.csv")
    assert_refused(refused, "expected no --targets with this option.", code=2)


def test_wrong_values_are_refused_by_name():
    with pytest.raises(InputError, match="trim: expected True or False, got 3"):
        sy.jobs.Convert(trim=3)
    with pytest.raises(InputError, match=r"engine: expected one of local, ray, got 'rya'. Did you mean 'ray'"):
        Running(engine="rya")
    with pytest.raises(AttributeError, match="no attribute 'Convrt'"):
        _ = sy.jobs.Convrt


def test_a_job_can_be_pickled_and_its_errors_too():
    convert = pickle.loads(pickle.dumps(sy.jobs.Convert(clip=2)))
    assert convert == sy.jobs.Convert(clip=2)
    error = pickle.loads(pickle.dumps(UsageError("expected one.", "-o")))
    assert (str(error), error.option) == ("-o: expected one.", "-o")
