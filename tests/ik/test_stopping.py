"""Ending a solve early: deadlines, Ctrl-C and other signals, and the work that default settings may take."""

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

import synovia as sy
from synovia.errors import InputError
from synovia.ik.status import Status

ARM = sy.bundled("arm7")
BODY = sy.bundled("humanoid")
HARD = np.eye(4)  # inside the base: within reach, but not for the limits
HARD[:3, 3] = 0.0, 0.0, 0.05
SOLVERS = ("lm", "dls", "transpose", "pinv", "sdls", "fabrik", "ccd", "particles", "full-body")
AT_ONCE = 5.0  # seconds of the processor, of which the problems below take many more if nobody ends them
WITH_SIGNALS = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer signals")


def endless(**settings):
    """Return a problem that takes long, if nobody ends it."""
    return sy.IK(ARM, sy.PoseGoal("tool"), sy.LevenbergMarquardt(attempts=1_000_000, **settings))


@pytest.fixture
def ctrl_c():
    """Return what begins a work and presses Ctrl-C after so many seconds."""
    before = signal.getsignal(signal.SIGINT)
    timers = []

    def press(after, work):
        timers.append(threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()
        work()

    yield press
    for timer in timers:
        timer.cancel()
        timer.join()
    signal.signal(signal.SIGINT, before)


def off(pose, joint, target):
    """Return how far a joint is from a target."""
    return np.linalg.norm(pose.position(joint) - target)


@pytest.mark.parametrize("solver", SOLVERS)
def test_at_a_deadline_the_best_pose_so_far_comes_back(solver):
    """It is within the limits, its errors are those of the pose, and the next solve knows nothing of it."""
    goal = sy.PositionGoal("left_hand")
    ik = sy.IK(BODY, goal, solver)
    target = (-0.3, 1.2, -0.2)
    free = ik.solve({"left_hand": target})
    assert not free.interrupted
    start = BODY.random_pose(3)
    cut = ik.solve({"left_hand": target}, start, deadline=0.0)
    assert cut.interrupted
    assert cut.status is Status.MAX_STEPS
    assert ik.problem.outside(cut.pose) == ()
    assert cut.errors[0].position == pytest.approx(off(cut.pose, "left_hand", target), abs=1e-9)
    assert cut.errors[0].position <= off(start, "left_hand", target) + 1e-9
    assert "deadline" in cut.explain()[0]
    assert cut.reasons == ()
    again = ik.solve({"left_hand": target})
    assert again.q.tobytes() == free.q.tobytes()
    assert (again.status, again.interrupted) == (free.status, False)


def test_what_holds_at_the_deadline_is_reached():
    """The status tells of the pose, not of the time."""
    pose = ARM.random_pose(1)
    solution = sy.IK(ARM, sy.PoseGoal("tool")).solve({"tool": pose.transform("tool")}, pose, deadline=0.0)
    assert solution.reached
    assert sy.solve(ARM, sy.PositionGoal("tool", pose.position("tool")), start=pose, deadline=0.0).reached


@pytest.mark.parametrize("deadline", [-1.0, float("nan"), float("inf"), "1", True])
def test_a_deadline_is_a_number_of_seconds(deadline):
    """Anything else is refused by name, wherever it is given."""
    ik = sy.IK(ARM, sy.PositionGoal("tool"))
    many = {"tool": np.zeros((2, 3))}
    for call in (lambda: ik.solve(deadline=deadline), lambda: ik.track(many, deadline=deadline)):
        with pytest.raises(InputError, match="deadline"):
            call()
    with pytest.raises(InputError, match="deadline"):
        ik.solve_many(many, deadline=deadline)


@pytest.mark.compiled
def test_a_long_solve_ends_at_its_deadline():
    """And has used the time: the pose is better than the start."""
    ik = endless()
    ik.precompile()
    begun, worked = time.monotonic(), time.process_time()
    solution = ik.solve({"tool": HARD}, deadline=0.2)
    assert time.monotonic() - begun >= 0.2
    assert time.process_time() - worked < AT_ONCE
    assert solution.interrupted
    assert solution.status is Status.MAX_STEPS
    assert solution.attempts > 10
    assert solution.errors[0].position < 0.9 * off(ARM.rest_pose(), "tool", HARD[:3, 3])


@pytest.mark.parametrize("threads", [1, 2])
def test_many_problems_share_one_deadline(threads):
    """Those not begun stay at their starts, with errors measured there."""
    ik = sy.IK(ARM, sy.PositionGoal("tool"))
    rng = np.random.default_rng(0)
    targets, starts = rng.uniform(-0.4, 0.4, (40, 3)), np.array([ARM.random_pose(k).q for k in range(40)])
    found = ik.solve_many({"tool": targets}, starts, threads=threads, deadline=0.0)
    assert found.interrupted.all()
    for solution, target in zip(found, targets, strict=True):
        assert solution.interrupted
        assert solution.errors[0].position == pytest.approx(off(solution.pose, "tool", target), abs=1e-9)
        assert solution.reached == (solution.errors[0].position <= ik.tolerance[0])
        assert solution.status in (Status.REACHED, Status.MAX_STEPS)
    assert np.abs(found.q[1:16] - starts[1:16]).max() < 1e-12
    assert not ik.solve_many({"tool": targets}, starts, threads=threads).interrupted.any()


@pytest.mark.compiled
def test_simd_batches_end_at_a_deadline_too():
    """Problems that the SIMD kernel leaves are not begun."""
    ik = sy.IK(ARM, sy.PoseGoal("tool"))
    targets = np.array([ARM.random_pose(k).transform("tool") for k in range(100)])
    found = ik.solve_many({"tool": targets}, simd=True, threads=1, deadline=0.0)
    assert found.interrupted.all()
    assert not found.reached.any()
    assert np.allclose(
        found.errors[:, 0, 0], np.linalg.norm(targets[:, :3, 3] - ARM.rest_pose().position("tool"), axis=1)
    )


@pytest.mark.parametrize(
    ("solver", "options"),
    [("lm", {}), ("lm", {"warm_start": False}), ("fabrik", {"candidates": 2}), ("lm", {"smoothness": 0.1})],
)
def test_frames_that_a_track_does_not_begin_hold_the_last_pose(solver, options):
    """Their errors are those of that pose, and nothing of it is left in the next track."""
    body, joint = (ARM, "tool") if solver == "lm" else (BODY, "left_hand")
    ik = sy.IK(body, sy.PositionGoal(joint), solver)
    pose = body.random_pose(2)
    targets = pose.position(joint) + np.linspace(0.02, 0.1, 12)[:, None] * (1.0, 0.5, 0.0)
    clip = ik.track({joint: targets}, pose, deadline=0.0, **options)
    assert clip.interrupted.all()
    assert np.abs(np.diff(clip.q, axis=0)).max() == 0.0
    for solution, target in zip(clip, targets, strict=True):
        assert solution.errors[0].position == pytest.approx(off(solution.pose, joint, target), abs=1e-9)
    assert not ik.track({joint: targets[:3]}, pose).interrupted.any()


@pytest.mark.compiled
def test_a_track_is_the_same_up_to_where_its_deadline_cuts_it():
    """Wherever that is."""
    ik = endless(max_steps=50)
    pose = ARM.random_pose(4)
    targets = np.repeat(pose.transform("tool")[None], 60, axis=0)
    targets[:, 0, 3] += np.linspace(0.0, 0.02, 60)
    whole = sy.IK(ARM, sy.PoseGoal("tool"), sy.LevenbergMarquardt(max_steps=50)).track({"tool": targets}, pose)
    targets[30:] = HARD
    clip = ik.track({"tool": targets}, pose, deadline=0.3)
    first = int(np.argmax(clip.interrupted))
    assert clip.interrupted[first:].all()
    assert first <= 30
    assert clip.q[:first].tobytes() == whole.q[:first].tobytes()
    assert np.abs(np.diff(clip.q[max(first, 30) :], axis=0)).max() == 0.0
    assert not clip.reached[30:].any()


def test_functions_of_ones_own_are_hardly_called_after_the_deadline():
    """Only to tell what is missed where the solve has ended."""
    calls = []

    def residual(pose):
        calls.append(1)
        return pose.position("tool") - (0.3, 0.3, 0.3)

    ik = sy.IK(ARM, sy.CustomGoal(residual))
    cut = ik.solve(deadline=0.0)
    assert cut.interrupted
    assert cut.status is Status.MAX_STEPS
    few = len(calls)
    assert ik.solve().reached
    assert len(calls) > few + few


@pytest.mark.compiled
@WITH_SIGNALS
def test_ctrl_c_ends_a_long_solve(ctrl_c):
    """KeyboardInterrupt as anywhere in Python; the problem is as it was."""
    ik = endless()
    ik.precompile()
    pose = ARM.random_pose(5)
    before = ik.solve({"tool": pose.transform("tool")})
    for _ in range(3):
        begun = time.process_time()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c(0.1, lambda: ik.solve({"tool": HARD}))
        assert time.process_time() - begun < AT_ONCE
        after = ik.solve({"tool": pose.transform("tool")})
        assert after.q.tobytes() == before.q.tobytes()


@pytest.mark.compiled
@WITH_SIGNALS
def test_a_handler_of_ones_own_decides_what_a_signal_does():
    """One that raises nothing lets the solve go on, to the same bits; what one raises comes out."""
    ik = sy.IK(ARM, sy.PoseGoal("tool"), sy.LevenbergMarquardt(attempts=30_000))
    ik.precompile()
    quiet = ik.solve({"tool": HARD})
    seen = []

    class OutOfPatienceError(Exception):
        pass

    def note(number, frame):
        seen.append(number)

    def leave(number, frame):
        raise OutOfPatienceError(number)

    def alarmed(work, again=0.0):
        signal.setitimer(signal.ITIMER_REAL, 0.05, again)
        return work()

    before = signal.signal(signal.SIGALRM, note)
    try:
        disturbed = alarmed(lambda: ik.solve({"tool": HARD}), again=0.05)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        assert seen
        assert not disturbed.interrupted
        assert disturbed.q.tobytes() == quiet.q.tobytes()
        signal.signal(signal.SIGALRM, leave)
        with pytest.raises(OutOfPatienceError):
            alarmed(lambda: endless().solve({"tool": HARD}))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 2])
@WITH_SIGNALS
def test_ctrl_c_ends_problems_on_all_threads(ctrl_c, threads):
    """Threads see no signals: the main one tells them, and waits for none to finish its problem."""
    ik = endless()
    ik.precompile()
    many = {"tool": np.repeat(HARD[None], 64, axis=0)}
    for work in (
        lambda: ik.solve_many(many, threads=threads),
        lambda: ik.track({"tool": many["tool"][:3]}, candidates=2, threads=threads),
    ):
        begun = time.process_time()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c(0.2, work)
        assert time.process_time() - begun < AT_ONCE
    pose = ARM.random_pose(5)
    assert ik.solve({"tool": pose.transform("tool")}).reached


def test_the_work_of_default_settings_is_bounded():
    """Whoever asks for more steps or attempts than the default ones gets them, however long they take."""
    for kind in sy.solvers.values():
        settings = kind()
        assert np.isfinite(settings.most_work)
        if kind.closed:
            continue
        assert np.isfinite(settings.replace(attempts=1, max_steps=1).most_work)
        assert np.isinf(settings.replace(attempts=settings.attempts + 1).most_work)
        assert np.isinf(settings.replace(max_steps=settings.max_steps + 1).most_work)


@pytest.mark.parametrize("solver", ["lm", "fabrik", "full-body"])
def test_work_that_is_spent_ends_every_solve_at_the_same_step(solver):
    """It is no interruption; a problem has the same bits whatever was solved before it."""
    from synovia.kernels.layout import MOST_WORK

    ik = sy.IK(BODY, sy.PositionGoal("left_hand"), solver)
    ik.problem.floats[MOST_WORK] = 200.0
    target = (-0.3, 1.2, -0.2)
    starts = np.array([BODY.random_pose(k).q for k in range(5)])
    alone = [ik.solve({"left_hand": target}, start) for start in starts]
    assert any(one.status is Status.MAX_STEPS for one in alone)
    assert not any(one.interrupted for one in alone)
    many = ik.solve_many({"left_hand": np.repeat([target], 5, axis=0)}, starts, threads=1)
    assert [one.steps for one in many] == [one.steps for one in alone]
    assert many.q.tobytes() == np.array([one.q for one in alone]).tobytes()


@contextmanager
def profiled(profile):
    """Have a function told of all calls."""
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)


def compile_anew():
    """Compile a kernel and run it."""
    from synovia.kernels.compiler import compile_events, jit
    from synovia.kernels.tree.tables import clamp_rows

    kernel = jit._decorator(**jit._ENTRY)(clamp_rows.py_func)
    compile_events.guard(kernel)
    q = np.full((1, ARM.nq), 100.0)
    kernel(ARM.tables.variables, ARM.tables.limits, q)
    return np.abs(q).max() < 100.0


@pytest.mark.jit
@pytest.mark.compiled
@pytest.mark.parametrize("place", ["callback", "generator", "front end"])
def test_ctrl_c_during_a_compile_is_heard_and_breaks_nothing(monkeypatch, place):
    """In a callback of LLVM it would be printed and lost; a generator of numba's would be over, and each later compile.

    The next compile works, and Ctrl-C is the user's again.
    """
    from numba.core import codegen, compiler, utils

    compile_anew()
    pressed = []

    def press(*_):
        if not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)

    def profile(frame, event, argument):
        if event == "call" and frame.f_code is utils.stream_list.__code__:
            press()

    def set_attribute(library, name, value, original=codegen.JITCodeLibrary.__setattr__):
        if name == "_compiled_object" and value is not None:
            press()
        original(library, name, value)

    def define_pipelines(pipeline, original=compiler.Compiler.define_pipelines):
        press()
        return original(pipeline)

    if place == "callback":  # the one that takes the machine code sets this
        monkeypatch.setattr(codegen.JITCodeLibrary, "__setattr__", set_attribute, raising=False)
    elif place == "front end":
        monkeypatch.setattr(compiler.Compiler, "define_pipelines", define_pipelines)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), profiled(profile if place == "generator" else sys.getprofile()):
        compile_anew()
    assert pressed
    assert signal.getsignal(signal.SIGINT) is handler
    assert compile_anew()
