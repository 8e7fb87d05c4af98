"""Live bodies that know what comes: with all of it the answer of the clip, with some of it one that is near."""

import json
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
from cli_runs import run
from synovia.errors import InputError
from synovia.retargeting.live import ahead
from synovia.retargeting.retarget import stages
from synovia.streams import ClipSource, play

REPO = Path(__file__).parents[2]
STEPS = sy.World([sy.Box(center=(0.0, 0.05, z), size=(4.0, 0.1, 0.6)) for z in (0.9, 2.5)])


@pytest.fixture(scope="module")
def walk():
    return sy.load_motion(REPO / "examples" / "walk.bvh").resample(30.0)


@pytest.fixture(scope="module")
def bodies():
    humanoid = sy.bundled("humanoid")
    return {
        "character": sy.load_skeleton(REPO / "examples" / "character.glb"),
        "humanoid": humanoid,
        "shapes": sy.with_shapes(humanoid),
    }


def fed(walk, target, **options):
    """Return a live body, its ticks while the clip comes, and those at the end."""
    live = sy.LiveRetarget(walk.skeleton, target, rate=walk.fps, **options)
    return live, [live.step(pose) for pose in walk], live.finish()


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("character", {}),
        ("humanoid", {"hold_feet": False, "idle_hands": "relaxed", "rest": "first"}),
        ("shapes", {"clearance": 0.01}),
        ("humanoid", {"world": STEPS}),
    ],
)
def test_a_clip_that_is_known_as_a_whole_has_the_answer_of_retarget(walk, bodies, name, options):
    """Bit for bit; ticks before the end hold, and the report is that of a body that follows."""
    live, ticks, ends = fed(walk, bodies[name], look_ahead=None, **options)
    answer = sy.retarget(walk, bodies[name], **{"clearance": None, **options})
    assert {tick.status.name for tick in ticks} == {"HOLDING"}
    np.testing.assert_array_equal([tick.q for tick in ends], answer.motion.q)
    facts, judged = live.report().facts, answer.judgement
    assert facts["verdict"] == answer.verdict
    named = [(one["limb"], one["cause"], one["level"], len(one["frames"])) for one in facts["findings"]]
    assert named == [(one.limb, one.cause, one.level, len(one.frames)) for one in answer.findings]
    assert facts["limbs"][0]["mean_deg"] == pytest.approx(np.degrees(judged.figures.limbs[0].mean))
    if options.get("hold_feet", True):
        stands = {role for tick in ends for role in tick.standing}
        assert stands == {role for role, spans in answer.contacts.items() if spans}
        assert facts["standing"] > 0.5
    assert live.finish() == []


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["character", "humanoid"])
def test_a_body_that_knows_some_poses_ahead_is_nearer_to_the_clip(walk, bodies, name):
    """It is late by this time, drains its poses at the end, and has no steps between its windows."""
    target, count = bodies[name], 12
    whole = np.array(sy.retarget(walk, target, clearance=None).motion.q)
    off = {}
    for seconds in (0.0, count / walk.fps):
        _, ticks, ends = fed(walk, target, look_ahead=seconds, learn=0)
        assert len(ends) == (count if seconds else 0)
        q = np.array([tick.q for tick in [*ticks, *ends]])[round(seconds * walk.fps) :]
        assert q.shape == whole.shape
        off[seconds] = np.abs(q - whole)[25:].max()  # the body moves over to the source at first
        steps = [np.abs(np.diff(one[25:], axis=0)).max() for one in (q, whole)]
        assert steps[0] < 1.1 * steps[1]
    assert off[count / walk.fps] < 0.5 * off[0.0]


@pytest.mark.compiled
def test_the_work_of_a_window_is_spread_over_ticks(walk, bodies, monkeypatch):
    """After the first windows, no tick computes more than half of one, and each pose still knows half of the time."""
    done, begun = [], []

    def counted(clip, *args, **more):
        begun.append((len(done), len(clip)))
        work = stages(clip, *args, **more)
        while True:
            done[-1] += 1
            try:
                next(work)
            except StopIteration as end:
                return end.value
            yield

    monkeypatch.setattr(ahead, "stages", counted)
    live = sy.LiveRetarget(walk.skeleton, bodies["character"], rate=walk.fps, look_ahead=1.0, learn=0.2)
    status = []
    for pose in walk:
        done.append(0)
        status.append(live.step(pose).status.name)
    first = status.index("REACHED")
    later = [tick for tick, _ in begun[2:]]
    whole = sum(done[later[0] - 1 : later[1] - 1])
    assert whole >= 6
    assert max(done[first + 15 :]) <= 0.5 * whole
    assert set(np.diff(later)) == {12}  # three eighths of 30 poses, begun 3 ticks before they are needed


def test_a_source_that_is_lost_is_followed_to_its_last_pose(walk, bodies):
    live = sy.LiveRetarget(walk.skeleton, bodies["humanoid"], rate=walk.fps, learn=0, look_ahead=0.2, timeout=0.1)
    for pose in walk[:40]:
        live.step(pose)
    after = [live.step().status.name for _ in range(20)]
    followed = after.index("HOLDING")
    assert 3 <= followed <= 9
    assert set(after[followed:]) == {"HOLDING"}
    ticks = [live.step(pose) for pose in walk[40:60]]
    assert [tick.status.name for tick in ticks[:6]] == ["HOLDING"] * 6
    assert ticks[6].status.name == "LATE"  # moves over from where it held
    assert live.report().facts["losses"] == 1


@pytest.mark.compiled
def test_a_loop_sends_the_poses_that_wait_at_the_end(walk, bodies):
    sent = []

    class Sink:
        def send(self, pose, time):
            sent.append((pose.q, time))

        def close(self):
            pass

    def make(body):
        return sy.LiveRetarget(body, bodies["humanoid"], rate=walk.fps, learn=0, look_ahead=0.5)

    run = play(ClipSource(walk, clock=None), make, lambda _: [Sink()], paced=False)
    assert run.ticks == len(sent) == len(walk) + 15
    assert [time for _, time in sent] == sorted(time for _, time in sent)


@pytest.mark.compiled
def test_a_body_that_knows_some_poses_ahead_stands_on_a_world(walk, bodies):
    """Planted feet stay where they are, at the heights of retarget's, also where one window follows another."""
    live, ticks, ends = fed(walk, bodies["humanoid"], look_ahead=1.0, learn=0, world=STEPS)
    answer = sy.retarget(walk, bodies["humanoid"], clearance=None, world=STEPS)
    motion = sy.Motion(live.skeleton, [tick.q for tick in [*ticks, *ends]][round(walk.fps) :], walk.fps)
    heights = []
    for role, spans in answer.contacts.items():
        row = live.skeleton.index(role)
        feet, asked = motion.positions()[:, row], answer.motion.positions()[:, row]
        for a, b in spans:
            if a >= 25 and b < len(motion) - 1:  # the body moves over to the source at first
                middle = slice(a + 2, b - 2)
                np.testing.assert_allclose(feet[middle, 1], asked[middle, 1], atol=0.006)  # the floor is that of a pose
                assert np.linalg.norm(np.ptp(feet[middle], axis=0)) < 0.005
                heights.append(float(feet[middle, 1].mean()))
    assert len(heights) == 4
    assert np.ptp(heights) == pytest.approx(0.1, abs=0.01)  # some stand on a step, and some on the floor
    assert live.report().verdict == answer.verdict
    assert {one["cause"] for one in live.report().findings} == {one.cause for one in answer.findings}


def test_a_world_needs_a_look_ahead(walk, bodies):
    with pytest.raises(InputError, match=r"world.*look_ahead"):
        sy.LiveRetarget(walk.skeleton, bodies["humanoid"], rate=30, world=STEPS)
    with pytest.raises(InputError, match="world"):
        sy.LiveRetarget(walk.skeleton, bodies["humanoid"], rate=30, look_ahead=None, world=3)


@pytest.mark.parametrize("wrong", [-1.0, np.inf, "all", True])
def test_a_look_ahead_is_a_time(walk, bodies, wrong):
    with pytest.raises(InputError, match="look_ahead"):
        sy.LiveRetarget(walk.skeleton, bodies["humanoid"], rate=30, look_ahead=wrong)


@pytest.mark.compiled
def test_the_command_stands_on_a_world(tmp_path, walk, bodies):
    """``synovia live --look-ahead --world`` sends the poses of a live body on the same world."""
    clip, world = (str(tmp_path / name) for name in ("walk.npz", "world.toml"))
    sy.save_motion(walk, clip)
    sy.save_world(STEPS, world)
    table = str(tmp_path / "out.csv")
    where = str(REPO / "examples" / "character.glb")
    code, text, err = run("live", clip, where, "--fast", "--learn", "0", "--look-ahead", "1", "--world", world,
                          "--to", table, "--json")  # fmt: skip
    assert code == 0, err
    live, ticks, ends = fed(walk, bodies["character"], look_ahead=1.0, learn=0, world=STEPS)
    rows = np.loadtxt(table, delimiter=",", skiprows=1)
    q = np.array([tick.q for tick in [*ticks, *ends]])
    np.testing.assert_allclose(rows[:, -q.shape[1] :], q, atol=1e-5)
    assert json.loads(text)["verdict"] == live.report().verdict
    code, _, err = run("live", clip, where, "--fast", "--world", world)
    assert code == 3
    assert "look_ahead" in err
