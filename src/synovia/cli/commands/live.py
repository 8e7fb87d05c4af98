"""``synovia live``: retarget a moving source while it moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from synovia import options
from synovia.cli.commands.view import View
from synovia.cli.declare import with_options
from synovia.cli.output import emit, emit_json, talk
from synovia.cli.running import Terminal
from synovia.jobs.clips import Roles
from synovia.jobs.hand import APART, distance_of
from synovia.jobs.options import File, Number, Word, argument, described, option, said_of
from synovia.jobs.shared import ACCELERATION, FORCE, GROUND, JSON, MODEL, RESTS, TARGET, UNSEEN, VELOCITY, RestPose
from synovia.jobs.verbs.retarget import Retarget
from synovia.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synovia.model import Skeleton
    from synovia.retargeting import LiveRetarget
    from synovia.streams import Run, Sink
    from synovia.viewer import PageSink

_RATE: Final = 60.0  # ticks per second; used if the source has no rate
_PAGE: Final = "page"  # name of the live page as a sink


@described
class Live(Roles):
    """Options of ``synovia live``."""

    source: str = argument(
        help="vmc://HOST:PORT, udp://HOST:PORT or - (lines of JSON), or the file of a clip.", metavar="SRC"
    )
    target: str = argument(like=TARGET)
    to: Any = option(
        default=(), help="Where poses go: page (the live page), vmc://HOST:PORT, udp://HOST:PORT or - (lines of JSON),"
        " or a CSV file; repeat for more.", metavar="SINK", repeats=True,
    )  # fmt: skip
    rate: float | None = option(
        default=None, help="Ticks per second.", kind=Number(0, 1000, above=True), metavar="HZ",
        shown="that of a clip; 60",
    )  # fmt: skip
    model: str | None = option(
        default=None, like=MODEL, help="Body of the joint values or joint positions, if SRC has lines of JSON.",
        metavar="MODEL", shown="33 landmarks of MediaPipe",
    )  # fmt: skip
    joint_map: Any = option(default=..., like=said_of(Retarget, "joint_map"))
    rest: Any = option(
        default=..., like=options.REST, help=f"{options.REST.help} With landmarks, what unseen arms and legs do: keep"
        " (stay where they were seen), rest, or a pose file of DST.", kind=RestPose((*RESTS, *UNSEEN)), metavar="POSE",
        shown="detected; keep",
    )  # fmt: skip
    up: str | None = option(default=..., like=said_of(Retarget, "up"))
    velocity: Any = option(default=..., like=VELOCITY)
    acceleration: Any = option(default=..., like=ACCELERATION)
    hold_feet: bool = option(default=..., like=said_of(Retarget, "hold_feet"))
    clearance: Any = option(default=..., like=options.LIVE_APART, kind=APART, metavar="DISTANCE|none")
    shapes: bool = option(default=..., like=options.FITTED)
    idle_hands: Any = option(default=..., like=said_of(Retarget, "idle_hands"))
    root_motion: Any = option(
        default=..., like=options.LIVE_ROOT, kind=Word(("root", "hips", "none")), metavar="root|hips|none"
    )
    fixed: bool = option(default=False, help="Keep the base of DST fixed.")
    learn: float = option(default=..., like=options.LEARN, kind=Number(0), metavar="SECONDS")
    look_ahead: float = option(default=..., like=options.LOOK_AHEAD, kind=Number(0), metavar="SECONDS")
    world: str | None = option(default=None, like=GROUND)
    calibration: Path | None = option(default=..., like=options.CALIBRATION, kind=File(), metavar="FILE.toml")
    save_calibration: Path | None = option(
        default=None, help="Write the calibration that was learned, at the end.", kind=File(), metavar="FILE.toml"
    )
    seconds: float | None = option(
        default=None, help="End after this time.", kind=Number(0, above=True), metavar="SECONDS",
        shown="the end of SRC, or Ctrl+C",
    )  # fmt: skip
    fast: bool = option(default=False, help="Do not wait between ticks: one for each pose of SRC.")
    remote: bool = option(default=False, help="Allow addresses that other machines can reach.")
    port: int = option(
        default=8080, like=replace(said_of(View, "port"), help="Port of --to page to try first; 0 for any.")
    )
    browser: bool = option(default=True, like=replace(said_of(View, "browser"), help="Open a browser for --to page."))
    force: bool = option(default=False, like=FORCE)
    as_json: bool = option(default=False, like=JSON)


@with_options(Live)
def live(given: Live) -> int:
    """Retarget a moving source while it moves, such as a tracked person, to a character or a robot.

    The first second of the source is learned; then the body follows, and its feet stand where those of the source do.
    While the source sends nothing, the body holds. At the end, and after Ctrl+C, the command prints a report; the exit
    code is 1 if its verdict is "failed", or no poses were received.

    For example: synovia live vmc://127.0.0.1:39539 robot.urdf --to udp://127.0.0.1:9000 --acceleration 50
    """
    from synovia.covers import with_shapes
    from synovia.streams import open_source, play

    target = given.load_body(given.target, Terminal())
    if given.shapes:
        target = with_shapes(target)
    skeleton = None if given.model is None else given.load_body(given.model, Terminal())
    source = open_source(given.source, skeleton, remote=given.remote, paced=not given.fast)
    made: list[LiveRetarget] = []
    page: PageSink | None = None
    if _PAGE in given.to:
        from synovia import viewer

        title = f"{given.source} onto {target.name}"
        page = viewer.PageSink(target, title, port=given.port, browser=given.browser)
        talk(f"the live page is at {page.view.url}")

    def make(body: Skeleton | None) -> LiveRetarget:
        made.append(_live(given, body, target, given.rate or getattr(source, "rate", _RATE)))
        if page is not None:
            page.follow(made[0])
        return made[0]

    def sinks(body: Skeleton) -> Sequence[Sink]:
        from synovia.streams import open_sink

        others = [open_sink(text, body, remote=given.remote, force=given.force) for text in given.to if text != _PAGE]
        return others if page is None else [*others, page]

    address = getattr(source, "address", None)
    if address is not None:
        talk(printable(f"listening on {address[0]}, port {address[1]}; Ctrl+C ends it."))
    try:
        run = play(source, make, sinks, seconds=given.seconds, paced=not given.fast)
        if given.save_calibration is not None and made and made[0].calibration is not None:
            made[0].calibration.save(given.save_calibration, force=given.force)
        _report(given, run)
        if run.interrupted is not None:
            raise run.interrupted
        if page is not None and given.seconds is None:
            talk("The source has ended; the page stays open, to save the recording. Ctrl+C ends it.")
            page.view.wait()
    finally:
        if page is not None:
            page.view.stop()
    return int(run.report is None or run.report.facts["verdict"] == "failed")


def _live(given: Live, body: Skeleton | None, target: Skeleton, rate: float) -> LiveRetarget:
    """Return the live retargeting of a source body to the target."""
    from synovia.io.worlds import read_world
    from synovia.retargeting import LiveRetarget, read_map

    return LiveRetarget(
        body, target, rate=rate, joint_map=None if given.joint_map is None else read_map(given.joint_map),
        rest=given.rest, up=given.up, velocity=given.velocity, acceleration=given.acceleration,
        hold_feet=given.hold_feet, clearance=distance_of(given.clearance), idle_hands=given.idle_hands,
        root_motion=given.root_motion, root="fixed" if given.fixed else "free", calibration=given.calibration,
        learn=given.learn, look_ahead=given.look_ahead,
        world=None if given.world is None else read_world(Path(given.world)),
    )  # fmt: skip


def _report(given: Live, run: Run) -> None:
    """Print the report of a run; as text to stderr if poses go to stdout."""
    report = run.report
    if given.as_json:
        facts: Mapping[str, Any] = {} if report is None else report.facts
        run_facts = {"ticks": run.ticks, "late": run.late, "dropped": run.dropped}
        emit_json({"schema": "synovia.live/1", **facts, **run_facts})
        return
    lines = [str(report) if report is not None else "no poses received from the source"]
    if report is None and run.dropped.get("of another size"):
        body = given.model or "33 landmarks (for another body, use --model FILE)"
        lines.append(f"expected the joint values, or the positions of all joints, of {body}")
    if run.dropped:
        lines.append("dropped messages: " + ", ".join(f"{n} {why}" for why, n in run.dropped.items()))
    (talk if "-" in given.to else emit)("\n".join(printable(line) for text in lines for line in text.split("\n")))
