"""What ``against.py`` measures: one process of one side. It knows no other module of the benchmarks but ``draws``.

A workload builds its problem and returns a call; the call returns how many problems were reached, or None. A side that
cannot build or call it says so, and the workload is left out, so add workloads freely for what only new versions have.
"""

from __future__ import annotations

import fnmatch
import inspect
import json
import sys
import time
from collections.abc import Callable

import numpy as np
from draws import joint_values, size_of

import synovia as sy

WORK: dict[str, tuple[str, Callable[[], Callable[[], object]]]] = {}
FINE = (1e-6, 1e-6)


def workload(group: str, name: str):
    def note(make: Callable[[], Callable[[], object]]):
        WORK[name] = group, make
        return make

    return note


def poses(body, joint: str, n: int) -> np.ndarray:
    """Return where a joint is in random poses, (n, 4, 4)."""
    rows = joint_values(body, np.random.default_rng(1), n)
    return np.stack([sy.Pose(body, q).transform(joint) for q in rows])


def far(body, joint: str, n: int) -> np.ndarray:
    """Return targets beyond the reach, (n, 3)."""
    rng = np.random.default_rng(2)
    way = rng.normal(size=(n, 3))
    way *= rng.uniform(1.02, 1.5, (n, 1)) * size_of(body) / np.linalg.norm(way, axis=1, keepdims=True)
    return body.rest_pose().positions[0] + way


def chain(n: int):
    """Return n bones of total length 1 on a gentle arc."""
    a, b = np.linspace(0.0, 0.6, n), np.linspace(0.0, 0.3, n)
    ways = np.column_stack([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)])
    return sy.Skeleton.chain(np.vstack([np.zeros(3), np.cumsum(ways / n, axis=0)]))


def near(n: int) -> np.ndarray:
    """Return targets in all directions, 0.1 to 0.95 away."""
    rng = np.random.default_rng(3)
    way = rng.normal(size=(n, 3))
    return way / np.linalg.norm(way, axis=1, keepdims=True) * rng.uniform(0.1, 0.95, (n, 1))


# What side by side solving is called: older versions say lanes.
_SIMD = "simd" if "simd" in inspect.signature(sy.IK.solve_many).parameters else "lanes"
SIMD = {_SIMD: True}


def many(ik, targets, **options) -> Callable[[], int]:
    return lambda: int(ik.solve_many(targets, **options).reached.sum())


def singly(ik, targets: list) -> Callable[[], int]:
    def call() -> int:
        return sum(ik.solve(one).reached for one in targets)

    return call


def arm_to_pose(solver: object, count: int, **options) -> Callable[[], int]:
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, sy.PoseGoal("tool"), solver, tolerance=FINE)
    return many(ik, {"tool": poses(arm, "tool", count)}, **options)


for _solver, _count in (("lm", 64), ("dls", 64), ("sdls", 16), ("segments", 64), ("ccd", 4)):
    workload("kernels", f"arm to poses, {_solver}")(lambda s=_solver, n=_count: arm_to_pose(s, n, threads=1))
workload("kernels", "arm to poses, lm in lanes")(lambda: arm_to_pose("lm", 256, threads=1, **SIMD))


def hand(solver: object, count: int) -> Callable[[], int]:
    body = sy.bundled("humanoid")
    targets = poses(body, "left_hand", count)[:, :3, 3].copy()
    return many(sy.IK(body, sy.PositionGoal("left_hand"), solver), {"left_hand": targets}, threads=1)


for _solver, _count in (("lm", 32), ("fabrik", 32), ("ccd", 32), ("particles", 4), ("two-bone", 256)):
    workload("kernels", f"hand of a person, {_solver}")(lambda s=_solver, n=_count: hand(s, n))


def along_a_chain(n: int, solver: str, count: int, **options) -> Callable[[], int]:
    return many(sy.IK(chain(n), sy.PositionGoal(n), solver), {n: near(count)}, threads=1, **options)


for _bones, _solver, _count in ((10, "fabrik", 320), (10, "ccd", 100), (100, "fabrik", 16), (100, "lm", 8)):
    workload("kernels", f"chain of {_bones}, {_solver}")(lambda b=_bones, s=_solver, n=_count: along_a_chain(b, s, n))
workload("kernels", "chain of 10, fabrik in lanes")(lambda: along_a_chain(10, "fabrik", 640, **SIMD))


@workload("kernels", "aim, pole, distance, plane, lm")
def _() -> Callable[[], int]:
    body = sy.bundled("humanoid")
    goals = [
        sy.AimGoal("head", (0.3, 1.6, 2.0), axis=(0, 0, 1)),
        sy.PositionGoal("left_hand"),
        sy.PoleGoal("left_lower_arm", (0.5, 0.5, -1.0)),
        sy.DistanceGoal("right_hand", point=(0.0, 1.0, 0.0), minimum=0.3),
        sy.PlaneGoal("right_foot", (0, 0, 0), (0, 1, 0)),
    ]
    return many(sy.IK(body, goals, "lm"), {"left_hand": poses(body, "left_hand", 8)[:, :3, 3].copy()}, threads=1)


@workload("calls", "arm, at the target")
def _() -> Callable[[], int]:
    arm = sy.bundled("arm7")
    ik = sy.IK(arm, sy.PoseGoal("tool"), tolerance=FINE)
    return singly(ik, [{"tool": arm.rest_pose().transform("tool")}] * 2000)


@workload("calls", "arm, random targets")
def _() -> Callable[[], int]:
    arm = sy.bundled("arm7")
    return singly(sy.IK(arm, sy.PoseGoal("tool")), [{"tool": T} for T in poses(arm, "tool", 100)] * 5)


@workload("calls", "hand of a person, fabrik")
def _() -> Callable[[], int]:
    body = sy.bundled("humanoid")
    ik = sy.IK(body, sy.PositionGoal("left_hand"), "fabrik")
    return singly(ik, [{"left_hand": T[:3, 3]} for T in poses(body, "left_hand", 100)])


@workload("calls", "building an IK")
def _() -> Callable[[], None]:
    body = sy.bundled("humanoid")
    goals = [sy.PositionGoal(end) for end in ("left_hand", "right_hand")]
    return lambda: [sy.IK(body, goals) for _ in range(10)] and None


def _misses(body: str, joint: str, solver: object, count: int) -> Callable[[], int]:
    skeleton = sy.bundled(body)
    targets = far(skeleton, joint, count)
    return singly(sy.IK(skeleton, sy.PositionGoal(joint), solver), [{joint: target} for target in targets])


for _body, _joint, _solver, _count in (
    ("arm7", "tool", "lm", 30), ("arm7", "tool", "ccd", 10), ("humanoid", "left_hand", "lm", 30),
    ("humanoid", "left_hand", "fabrik", 10), ("humanoid", "left_hand", "full-body", 5),
):  # fmt: skip
    workload("misses", f"{_body}, {_solver}")(lambda b=_body, j=_joint, s=_solver, n=_count: _misses(b, j, s, n))

ENDS = ("left_hand", "right_hand", "left_foot", "right_foot", "head")


def whole_body(solver: object, count: int, balance: bool) -> Callable[[], int]:
    body = sy.bundled("humanoid")
    goals: list[object] = [sy.PoseGoal(end) if end != "head" else sy.PositionGoal(end) for end in ENDS]
    rng = np.random.default_rng(4)
    rest = body.rest_pose()
    targets: dict[str, np.ndarray] = {}
    for end in ENDS:
        T = np.repeat(rest.transform(end)[None], count, axis=0)
        T[:, :3, 3] += rng.uniform(-0.08, 0.08, (count, 3))
        targets[end] = T if end != "head" else T[:, :3, 3].copy()
    if balance:
        goals = [goal if i < 4 else goal.at_priority(2) for i, goal in enumerate(goals)]
        goals += [sy.CenterOfMassGoal((0.0, 0.95, 0.0), priority=1, weight=0.1), sy.RestGoal()]
    return many(sy.IK(body, goals, solver, root="free"), targets, threads=1)


workload("full-body", "five ends, cold")(lambda: whole_body("full-body", 8, balance=False))
workload("full-body", "priorities and balance, cold")(lambda: whole_body("full-body", 4, balance=True))
workload("full-body", "five ends, cold, lm")(lambda: whole_body("lm", 16, balance=False))


@workload("full-body", "a track of 60 frames")
def _() -> Callable[[], int]:
    body = sy.bundled("humanoid")
    ik = sy.IK(body, [sy.PositionGoal(end) for end in ENDS], "full-body", root="free")
    t = np.linspace(0.0, 2.0 * np.pi, 60)
    rest = body.rest_pose()
    sway = np.column_stack([0.06 * np.sin(t), 0.03 * np.sin(2 * t), 0.06 * np.cos(t) - 0.06])
    targets = {end: rest.position(end) + (i % 3) * 0.5 * sway for i, end in enumerate(ENDS)}
    return lambda: int(ik.track(targets).reached.sum())


for _way, _options in (("one by one", {}), ("in lanes", SIMD), ("in single precision", {_SIMD: "single"})):
    workload("bulk", f"2000 arms, all threads, {_way}")(lambda o=_options: arm_to_pose("lm", 2000, **o))


def main() -> None:
    """Answer one order a line: names of groups; then a workload and how many calls, until the input ends."""
    groups, only = json.loads(sys.stdin.readline()), sys.argv[1:]
    calls: dict[str, Callable[[], object]] = {}
    told: dict[str, object] = {}
    for name, (group, make) in WORK.items():
        if group not in groups or (only and not any(fnmatch.fnmatch(name, one) for one in only)):
            continue
        try:
            call = make()
            call()  # loads or compiles
            began = time.process_time()
            told[name] = {"group": group, "reached": call(), "seconds": time.process_time() - began}
            calls[name] = call
        except Exception as error:  # noqa: BLE001 - whatever an older or newer side cannot do is told, not measured
            told[name] = {"group": group, "cannot": f"{type(error).__name__}: {error}".splitlines()[0]}
    print(json.dumps({"file": sy.__file__, "work": told}), flush=True)
    for line in sys.stdin:
        name, count = json.loads(line)
        call = calls[name]
        began, clock = time.process_time(), time.perf_counter()
        for _ in range(count):
            call()
        print(json.dumps([time.process_time() - began, time.perf_counter() - clock]), flush=True)


if __name__ == "__main__":
    main()
