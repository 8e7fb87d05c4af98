"""Goals with bounds and cones against SciPy's SLSQP from 20 random starts.

    python benchmarks/bounds.py                     # 1,000 problems of the bundled arm
    python benchmarks/bounds.py --count 200 --solver full-body

A problem is a pose goal with random bounds by axis (slots, cones, sides, free axes) along the axes of the target or of
the tool, or a position with a cone. Half of the targets are poses of the arm; the others are shifted and turned. SLSQP
minimises the same cost, half the square of what lies outside the bounds, within the joint limits. It measures that with
kinematics and rotations of NumPy and SciPy, written here.
"""

import argparse
import math
import time

import numpy as np
from common import machine, save, table
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import synovia as sy

STARTS = 20
BAR = 1.001


class Arm:
    """Forward kinematics of a chain of hinges, many poses at once."""

    def __init__(self, skeleton: sy.Skeleton, tip: str) -> None:
        """Read the joints."""
        rows = [skeleton.index(tip)]
        while (above := int(skeleton.parents[rows[-1]])) >= 0:
            rows.append(above)
        self.joints = [skeleton.joints[row] for row in reversed(rows)]
        self.moving = [k for k, joint in enumerate(self.joints) if joint.kind is sy.Kind.HINGE]
        self.lower, self.upper = skeleton.limits

    def frames(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rotations (T, 3, 3) and positions (T, 3) of the tip at joint values (T, n)."""
        R, p = np.tile(np.eye(3), (len(q), 1, 1)), np.zeros((len(q), 3))
        k = 0
        for joint in self.joints:
            p = p + R @ joint.rest[:3, 3]
            R = R @ joint.rest[:3, :3]
            if joint.kind is sy.Kind.HINGE:
                R = R @ about(np.asarray(joint.axis, float), q[:, k])
                k += 1
        return R, p


def about(axis: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return rotations about an axis, (T, 3, 3), by Rodrigues' formula."""
    x, y, z = axis / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    s, c = np.sin(angles)[:, None, None], np.cos(angles)[:, None, None]
    return np.eye(3) + s * K + (1 - c) * K @ K


def swing_twist(E: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Split rotations into a twist about axis k, (T,), and the rotation vector of the tilt that follows, (T, 3)."""
    quat = Rotation.from_matrix(E).as_quat()
    twist = np.zeros_like(quat)
    twist[:, [k, 3]] = quat[:, [k, 3]]
    twist[np.linalg.norm(twist, axis=1) < 1e-12, 3] = 1.0
    tilt = (Rotation.from_quat(quat) * Rotation.from_quat(twist).inv()).as_rotvec()
    angle = 2.0 * np.arctan2(twist[:, k], twist[:, 3])
    return np.angle(np.exp(1j * angle)), tilt


def clipped(x: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """Return what of values lies outside their ranges."""
    return x - np.clip(x, ranges[:, 0], ranges[:, 1])


def odd_axis(ranges: np.ndarray) -> int:
    """Return the axis whose range differs most in size from the others; z for equal ranges."""
    sizes = np.minimum(ranges[:, 1] - ranges[:, 0], 2 * math.pi)
    order = np.argsort(sizes, kind="stable")
    if np.ptp(sizes) == 0.0:
        return 2
    return int(order[2] if sizes[order[2]] - sizes[order[1]] >= sizes[order[1]] - sizes[order[0]] else order[0])


def outside(
    R: np.ndarray, p: np.ndarray, T: np.ndarray, ranges: np.ndarray, in_tool: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far frames lie outside the bounds about a target: lengths (n, 3), angles (n, 3)."""
    E = T[:3, :3].T @ R
    x = (p - T[:3, 3]) @ T[:3, :3]
    k = odd_axis(ranges[3:])
    twist, tilt = swing_twist(E, k)
    if in_tool:
        x, tilt = (np.einsum("nji,nj->ni", E, part) for part in (x, tilt))
    w = clipped(tilt, ranges[3:])
    low, high = ranges[3 + k]
    if math.isinf(low):
        w[:, k] = 0.0
    else:
        turn = twist - 0.5 * (low + high)
        turn -= 2 * math.pi * np.floor(turn / (2 * math.pi) + 0.5)
        w[:, k] = clipped(turn[:, None], np.array([[0.5 * (low - high), 0.5 * (high - low)]]))[:, 0]
    return clipped(x, ranges[:3]), w


def cone_outside(R: np.ndarray, p: np.ndarray, problem: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Return how far frames are from a position, and how far their axes lie outside a cone."""
    position, axis, direction, cone = problem
    u = R @ axis
    angle = np.arctan2(np.linalg.norm(np.cross(u, direction), axis=1), u @ direction)
    return p - position, np.maximum(angle - cone, 0.0)[:, None]


def draw(rng: np.random.Generator, arm: sy.Skeleton, tip: str, plain: bool = False):
    """Return the goals of a random problem, and the function that measures frames outside its bounds."""
    T = arm.random_pose(int(rng.integers(2**31))).transform(tip).copy()
    if rng.random() < 0.5:
        T[:3, 3] += rng.normal(size=3) * rng.choice([0.05, 0.5])
        T[:3, :3] = T[:3, :3] @ Rotation.from_rotvec(0.5 * rng.normal(size=3)).as_matrix()
    if not plain and rng.random() < 0.3:
        axis, direction = (v / np.linalg.norm(v) for v in rng.normal(size=(2, 3)))
        cone = float(rng.uniform(0.05, 0.8))
        goals = [
            sy.PositionGoal(tip, T[:3, 3], name="place"),
            sy.DirectionGoal(tip, axis, direction, cone=cone, name="cone"),
        ]
        return goals, lambda R, p: cone_outside(R, p, (T[:3, 3], axis, direction, cone))
    if plain:
        return [sy.PoseGoal(tip, transform=T)], lambda R, p: outside(R, p, T, np.zeros((6, 2)), in_tool=False)
    bounds = []
    for scale in (0.1, 0.1, 0.1, 0.5, 0.5, 0.5):
        far = float(scale * rng.uniform(0.1, 1.0))
        side = float(scale * rng.uniform(-1.0, 1.0))
        bounds.append([0, None, far, (side, side + far), (0.0, None)][rng.choice(5, p=(0.35, 0.2, 0.25, 0.15, 0.05))])
    frame = str(rng.choice(["target", "tool"]))
    goal = sy.PoseGoal(tip, transform=T, bounds=bounds, bounds_frame=frame)
    ranges = np.array(goal.ranges)
    return [goal], lambda R, p: outside(R, p, T, ranges, frame == "tool")


def slsqp(arm: Arm, measure, reach: float, starts: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the lowest cost from some starts, and its joint values."""
    h = 1e-7

    def costs(q: np.ndarray) -> np.ndarray:
        d, w = measure(*arm.frames(q))
        return 0.5 * ((d / reach) ** 2).sum(axis=1) + 0.5 * (w**2).sum(axis=1)

    def cost(q: np.ndarray) -> tuple[float, np.ndarray]:
        both = costs(np.concatenate([q[None], q + h * np.eye(len(q)), q - h * np.eye(len(q))]))
        return float(both[0]), (both[1 : len(q) + 1] - both[len(q) + 1 :]) / (2 * h)

    best, found = math.inf, starts[0]
    for start in starts:
        end = minimize(
            cost, start, jac=True, method="SLSQP", bounds=list(zip(arm.lower, arm.upper, strict=True)),
            options={"ftol": 1e-15, "maxiter": 300},
        )  # fmt: skip
        q = np.clip(end.x, arm.lower, arm.upper)
        if (value := float(costs(q[None])[0])) < best:
            best, found = value, q
        if best < 1e-14:
            break
    return best, found


def main() -> None:
    """Solve the problems by both, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--solver", nargs="+", default=["lm", "full-body"])
    parser.add_argument("--plain", action="store_true", help="without bounds, for comparison")
    given = parser.parse_args()
    where = machine()
    skeleton, tip = sy.bundled("arm7"), "tool"
    arm = Arm(skeleton, tip)
    rows = {name: [] for name in given.solver}
    known = []
    for seed in range(given.first, given.first + given.count):
        rng = np.random.default_rng(seed)
        goals, measure = draw(rng, skeleton, tip, given.plain)
        starts = rng.uniform(arm.lower, arm.upper, (STARTS, len(arm.lower)))
        problems = {name: sy.IK(skeleton, goals, name) for name in given.solver}
        reach, tolerance = next(iter(problems.values())).reach, next(iter(problems.values())).tolerance
        begun = time.perf_counter()
        best, q = slsqp(arm, measure, reach, starts)
        seconds = time.perf_counter() - begun
        d, w = (np.linalg.norm(part[0]) for part in measure(*arm.frames(q[None])))
        met = d <= tolerance[0] and w <= tolerance[1]
        known.append((met, seconds))
        for name, ik in problems.items():
            begun = time.perf_counter()
            solution = ik.solve()
            seconds = time.perf_counter() - begun
            d, w = (part[0] for part in measure(*arm.frames(solution.pose.q[None])))
            cost = 0.5 * float(((d / reach) ** 2).sum() + (w**2).sum())
            errors = solution.errors
            said = (max(e.position for e in errors), max(e.angle for e in errors))
            true = float(np.linalg.norm(d)), float(np.linalg.norm(w))
            honest = np.allclose(said, true, atol=1e-9 + 1e-7 * sum(true))
            false_proof = met and solution.status is sy.Status.UNREACHABLE
            ratio = 1.0 if solution.reached else cost / best if best > 0 else math.inf
            rows[name].append((solution.reached, met, ratio, seconds, honest, false_proof))
            if (met and not solution.reached) or ratio > BAR or not honest or false_proof:
                print(f"seed {seed}, {name}: {solution.status.name}, SLSQP {'meets' if met else 'misses'} it, "
                      f"cost {ratio:.5f} of its best; error {said}, {true}", flush=True)  # fmt: skip
    lines = []
    for name, found in rows.items():
        reached, met, ratio, seconds, honest, wrong = (np.array(part) for part in zip(*found, strict=True))
        misses = ~reached & ~met
        lines.append([
            name, len(found), int(met.sum()), int((met & reached).sum()), int((~met & reached).sum()),
            int(misses.sum()), f"{np.mean(ratio[misses] <= BAR):.1%}" if misses.any() else "-",
            f"{ratio[misses].max():.4f}" if misses.any() else "-", int((~honest).sum()), int(wrong.sum()),
            f"{1e3 * np.median(seconds):.2f}", f"{1e3 * np.median([s for _, s in known]):.0f}",
        ])  # fmt: skip
    head = [
        "solver", "problems", "SLSQP meets", "of these met", "more met", "missed by both", "cost within 1.001",
        "worst", "errors wrong", "false proofs", "ms", "ms of SLSQP",
    ]  # fmt: skip
    save("bounds", "Goals with bounds against SLSQP", {"head": head, "rows": lines}, table(head, lines), where)


if __name__ == "__main__":
    main()
