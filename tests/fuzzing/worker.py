"""The process that reads changed files, within a limit of processor time and of memory for each.

Prints a line of JSON for each case. What goes beyond a limit ends the process: the one that started it knows the case.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import gc
import io
import json
import os
import resource
import shutil
import signal
import time
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from random import Random

import synovia as sy
from fuzzing.data_seeds import LEROBOT, smpl_arrays, write_lerobot
from fuzzing.doors import DOORS, LIVE
from fuzzing.doors import MEMORY as MORE
from fuzzing.doors import SECONDS as LONGER
from fuzzing.mutate import mutated
from fuzzing.seeds import Seed, archive, clip
from synovia.batch.functions import Solve
from synovia.batch.ledger import Ledger
from synovia.batch.solving import write_answers
from synovia.batch.summary import worst_first
from synovia.batch.tables import Source
from synovia.cli import main as synovia_cli
from synovia.clips.pointfile import holds_points, read_points
from synovia.files.goals import read_goals
from synovia.files.poses import load_pose, save_pose
from synovia.files.tracks import read_track
from synovia.io.load import load_motions
from synovia.io.toml import write_skeleton
from synovia.retargeting.joint_map import read_map, write_map

SECONDS = 1.0
MEMORY = 512 * 2**20
CODES = (0, 3, 4)  # of the command line: done, bad input, an extra is missing
WRITTEN = 20_000  # numbers of a motion that is written again
ALIKE = 0.15  # part of the cases that go through the command line, and of those that are written again


class Fault(Exception):
    """What must not come of a file, found by looking at the result."""


def read_model(path: Path, rng: Random) -> None:
    """Read skeleton and motions, some by the command line, and write some of them again."""
    way = rng.random()
    if way < ALIKE:
        more = ["--json"] if rng.random() < 0.5 else []
        shell("inspect", str(path), *more)
        return
    skeleton = sy.load_skeleton(path)
    motions = load_motions(path)
    if way > ALIKE * 2:
        return
    out = path.with_name("again")
    write_skeleton(skeleton, out.with_suffix(".toml"), force=True)
    for motion in motions[:1]:
        if motion.q.size <= WRITTEN:
            for ending in (".bvh", ".csv", ".npz"):
                sy.save_motion(motion, out.with_suffix(ending), force=True)
            with suppress(sy.SynoviaError):  # most are no humanoids
                sy.save_motion(motion, out.with_suffix(".vrma"), force=True)
            if path.suffix not in (".gltf", ".glb"):
                sy.save_motion(motion, out.with_suffix(".glb"), force=True)
            if path.suffix in (".gltf", ".glb"):
                for ending in (".gltf", ".glb"):
                    sy.save_motion(motion, out.with_suffix(ending), into=path, force=True)


def read_a_world(path: Path, rng: Random) -> None:
    """Read obstacles, measure a distance, and write some of them again; or show them by the command line."""
    if rng.random() < ALIKE:
        shell("inspect", str(path), "--json")
        return
    world = sy.load_world(path)
    world.distances(sy.Sphere(radius=0.1))
    if sum(len(shape.solids()) for obstacle in world for shape in obstacle.shapes) < 1000:
        sy.save_world(world, path.with_name("again.toml"), force=True)
        if len(sy.load_world(path.with_name("again.toml"))) != len(world):
            raise Fault("a world that is written has other obstacles")


def shell(*arguments: str) -> None:
    """Run a command of the command line, which must end in one of its ways."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = synovia_cli(list(arguments))
    if code not in CODES:
        raise Fault(f"exit code {code}: {err.getvalue()[-3000:]}")


def read_some_goals(path: Path, rng: Random) -> None:
    del rng
    read_goals(path)


def read_a_track(path: Path, rng: Random) -> None:
    del rng
    read_track(path)


def read_a_map(path: Path, rng: Random) -> None:
    del rng
    write_map(read_map(path), path.with_name("again.toml"), force=True)


@functools.cache
def bundled(name: str) -> sy.Skeleton:
    """Return a bundled model, read once."""
    return sy.bundled(name)


def read_a_pose(path: Path, rng: Random) -> None:
    del rng
    body = bundled("humanoid" if b"hips" in path.read_bytes() else "arm7")
    save_pose(load_pose(path, body), path.with_name("again.json"), force=True)


def read_a_table(path: Path, rng: Random) -> None:
    del rng
    sy.formats.read_csv(path, bundled("humanoid" if b"hips" in path.read_bytes() else "arm7"))


def read_some_points(path: Path, rng: Random) -> None:
    del rng
    holds_points(path)
    points = read_points(path)
    points.chosen(None, path)
    if points.joints:
        points.chosen({"x": points.joints[0]}, path)


def read_a_robots_motion(path: Path, rng: Random) -> None:
    """Read a motion that needs its model."""
    motion = sy.load_motion(path, skeleton=bundled("arm7"))
    if rng.random() < ALIKE:
        sy.save_motion(motion, path.with_name("again.isaac.npz"), force=True)


@functools.cache
def smpl_body(folder: Path) -> sy.Skeleton:
    """Return the skeleton of the synthetic model in the form of SMPL."""
    path = folder / "smpl_body.npz"
    path.write_bytes(archive(smpl_arrays()))
    return sy.load_skeleton(path)


def read_a_clip_of_amass(path: Path, rng: Random) -> None:
    body = smpl_body(path.parent)
    if rng.random() < 0.5:
        sy.load_motion(path, skeleton=path.parent / "smpl_body.npz")  # in the shape of its body
    else:
        sy.load_motion(path, skeleton=body)


@functools.cache
def solver() -> Solve:
    """Return the function that solves the tables."""
    return Solve("arm7")


def read_a_table_of_targets(path: Path, rng: Random) -> None:
    """Solve a table, and write the answers in some format."""
    out = path.with_name(f"answers{rng.choice(('.csv', '.npz'))}")
    with Source(path) as source:
        write_answers(solver(), source, out, force=True)


def read_a_ledger(path: Path, rng: Random) -> None:
    """Open the ledger of a folder, sort its rows and write it again."""
    del rng
    folder = path.with_name("ledger")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(path, folder / f"ledger{path.suffix}")
    with Ledger(folder) as ledger:
        ledger.part_with(list(ledger.rows))
        worst_first(ledger.write())


def read_a_data_set(path: Path, rng: Random) -> None:
    """Add the poses of the tool to a data set of LeRobot."""
    del rng
    from synovia.lerobot import Arm, add_poses
    from synovia.lerobot.layout import DataSet

    root = path.with_name("set")
    shutil.rmtree(root, ignore_errors=True)
    write_lerobot(root)
    ending = "".join(path.suffixes)
    shutil.copy(path, root / LEROBOT[ending])
    data = DataSet(root)
    data.feature("observation.state")
    if list(root.glob("data/*/*.parquet")):
        add_poses(root, path.with_name("copy"), Arm(bundled("arm7"), "tool"), force=True)


READERS = {
    **dict.fromkeys(("bvh", "fbx", "gltf", "urdf", "mjcf", "toml", "npz"), read_model),
    "csv": read_a_table,
    "points": read_some_points,
    "map": read_a_map,
    "pose": read_a_pose,
    "goals": read_some_goals,
    "track": read_a_track,
    **dict.fromkeys(("tracker", "unitree"), read_a_robots_motion),
    "smpl": read_model,
    "amass": read_a_clip_of_amass,
    "markers": read_some_points,
    "table": read_a_table_of_targets,
    "ledger": read_a_ledger,
    "lerobot": read_a_data_set,
    "world": read_a_world,
}


def case_of(seeds: list[Seed], seed: int, case: int) -> tuple[Seed, bytes, Random]:
    """Return the file that a case begins with, the changed content, and the generator for what is done with it."""
    rng = Random(f"{seed} {case}")
    kinds = sorted({one.reader for one in seeds})
    kind = kinds[case % len(kinds)]
    chosen = rng.choice([one for one in seeds if one.reader == kind])
    return chosen, mutated(chosen, rng), rng


def chain(error: BaseException) -> list[BaseException]:
    """Return an error with those that it came from."""
    out = [error]
    while (below := out[-1].__cause__ or out[-1].__context__) is not None and len(out) < 20:
        out.append(below)
    return out


def judged(chosen: Seed, data: bytes, rng: Random, path: Path) -> tuple[str, str]:
    """Return what reading came to, and what is wrong with that, empty if nothing is."""
    path.write_bytes(data)
    try:
        (DOORS if chosen.door else READERS)[chosen.reader](path, rng)
    except sy.SynoviaError as error:
        if chosen.reader in LIVE:
            return "failed", f"an input ends the loop: {error} at {where(error)}"
        if any(isinstance(one, MemoryError) for one in chain(error)):
            return "failed", f"MemoryError: {where(chain(error)[-1])}"
        text = str(error)
        if len(text) > 4000:
            return "failed", f"message of {len(text)} characters: {text[:300]}"
        return type(error).__name__, ""
    except Exception as error:  # noqa: BLE001  what the readers must not let through
        return "failed", f"{type(error).__name__}: {str(error)[:2000]} at {where(error)}"
    return "read", ""


def where(error: BaseException) -> str:
    """Return the innermost lines of ours in an error's way."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "synovia" in f.filename]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[:-4:-1])


def peak() -> int:
    """Return the largest memory since ``forget``, bytes; 0 where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


def forget() -> None:
    """Begin to measure the memory anew."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def tidy() -> None:
    """Give memory that earlier cases have freed back to the system, so that what a case takes shows."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def used() -> int:
    """Return the address space in use, bytes; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def warm(seeds: list[Seed], folder: Path) -> None:
    """Read every file, and one of each kind in all ways, so that nothing is loaded or compiled on the clock."""
    kinds: set[tuple[str, str]] = set()
    for seed in seeds:
        first = (seed.reader, seed.ending) not in kinds
        kinds.add((seed.reader, seed.ending))
        for draw in (0.0, ALIKE * 1.5) if first else (ALIKE * 1.5,):
            fixed = Random(0)
            fixed.random = lambda draw=draw: draw
            path = folder / f"seed{seed.ending}"
            path.write_bytes(seed.data)
            with suppress(sy.SynoviaError):  # some real files are broken on purpose
                (DOORS if seed.door else READERS)[seed.reader](path, fixed)
    body = sy.bundled("humanoid")
    clip(body).frames()
    sy.Skeleton([sy.Joint("a", kind=sy.Kind.BALL, limit=sy.SwingTwist((1, 1), (1, 1), twist=(0.5, 1)))]).rest_pose()


def work(seeds: list[Seed], seed: int, cases: range, folder: Path) -> None:
    """Read case after case; every one's outcome is a line."""
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)  # tells where, then ends the process
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", UserWarning)  # what the file says and is left out
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # MuJoCo prints
    warm(seeds, folder)
    gc.collect()
    gc.freeze()  # collections look only at what cases make
    hard = used() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers.write("ready\n")
    answers.flush()
    for case in cases:
        chosen, data, rng = case_of(seeds, seed, case)
        path = folder / f"case{chosen.ending}"
        if chosen.door:
            tidy()
        forget()
        before = peak()
        signal.setitimer(signal.ITIMER_PROF, LONGER if chosen.door else SECONDS)
        begun = time.process_time()
        outcome, wrong = judged(chosen, data, rng, path)
        seconds = time.process_time() - begun
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        more = max(peak() - before, 0)
        if chosen.door and more > MORE and not wrong:
            outcome, wrong = "failed", f"{more / 2**20:.0f} MiB more than at rest"
        row = {"case": case, "reader": chosen.reader, "seed": chosen.name, "outcome": outcome, "wrong": wrong,
               "bytes": len(data), "seconds": round(seconds, 4), "memory": more}  # fmt: skip
        answers.write(json.dumps(row) + "\n")
        answers.flush()
