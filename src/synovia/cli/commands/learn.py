"""``synovia learn``: learn where solves of a model should start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from synovia.cli.declare import with_options
from synovia.cli.output import emit_report, talk
from synovia.cli.progress import Bar
from synovia.cli.running import Terminal
from synovia.errors import FormatError
from synovia.jobs.base import UsageError
from synovia.jobs.clips import Looped, body_of
from synovia.jobs.options import File, Number, argument, described, option
from synovia.jobs.shared import FORCE, JOINT, JSON, MODEL, OUTPUT, SEED
from synovia.text import Report, counted, listed

SCHEMA: Final = "synovia.starts-learned/1"


@described
class Learn(Looped):
    """Options of ``synovia learn``."""

    file: str = argument(like=MODEL)
    output: Path = option(like=replace(OUTPUT, help="The file to write, .npz."), required=True)
    joint: Sequence[str] = option(
        default=(), like=replace(JOINT, help="A joint with a goal, in the order of the goals; repeat for up to four."),
        shown="hands and feet, else the four tips furthest from the root", rank=-1,
    )  # fmt: skip
    position: bool = option(default=False, help="Learn for goals of positions, instead of whole poses.", rank=-1)
    samples: int | None = option(
        default=None, help="Number of random poses to learn from.", kind=Number(64, 2**22, whole=True), metavar="N",
        shown="262144 for an arm, 32768 for other bodies",
    )  # fmt: skip
    seed: int = option(default=0, like=replace(SEED, help="Seed of the poses."))
    plot: Path | None = option(
        default=None, help="Plot where starts help, and the steps that they save; needs the extra [plot].", kind=File(),
        metavar="PNG",
    )  # fmt: skip
    force: bool = option(default=False, like=FORCE)
    as_json: bool = option(default=False, like=JSON)


@with_options(Learn)
def learn(given: Learn) -> None:
    """Learn where solves of a model should start, so that they take fewer steps.

    The file is for one model with these goals. 'synovia solve' takes it as --starts, Python as sy.formats.load_starts.

    For example: synovia learn arm7 -o arm7.npz
    """
    from synovia.comparison.problems import default_joints
    from synovia.facade import IK
    from synovia.goals import PoseGoal, PositionGoal
    from synovia.ik.starts import MOST_GOALS
    from synovia.io.base import check_writable
    from synovia.learning import learn_starts

    if len(given.joint) > MOST_GOALS:
        raise UsageError(f"expected at most {MOST_GOALS} joints, got {len(given.joint)}.", "--joint")
    if given.output.suffix.lower() != ".npz":  # check files before the work
        what, value = "starts are saved as .npz", given.output.suffix or None
        raise FormatError(what, where=str(given.output), value=value, expected=".npz")
    check_writable(given.output, force=given.force)
    if given.plot is not None:
        from synovia.plots.style import check_plot

        check_plot(given.plot, force=given.force)
    skeleton = body_of(given.file, Terminal(), loops=given.loops)
    kind = PositionGoal if given.position else PoseGoal
    joints = given.joint or default_joints(skeleton, MOST_GOALS)
    if not given.joint and joints != default_joints(skeleton):
        talk(f"synovia: learning starts for goals on {listed(joints)}; --joint chooses others")
    goals = [kind(name) for name in joints]
    with Bar("learning", "regions") as bar:
        starts = learn_starts(skeleton, goals, samples=given.samples, seed=given.seed, progress=bar)
    starts.save(given.output, force=given.force)
    if given.plot is not None:
        from synovia.plots import plot_starts

        plot_starts(IK(skeleton, goals, starts=starts), given.plot, force=given.force)
    size = given.output.stat().st_size
    found = f"{counted(starts.poses, 'pose')} in {counted(starts.leaves, 'region')}, {size / 1e6:.1f} MB"
    facts = {
        "schema": SCHEMA, "output": str(given.output), "model": skeleton.name, "goals": list(starts.problem.goals),
        "key": starts.key, "poses": starts.poses, "regions": starts.leaves, "bytes": size,
    }  # fmt: skip
    report = Report([f"{given.output}: {found}, for the {listed(starts.problem.goals)}"], facts)
    emit_report(report, as_json=given.as_json)
