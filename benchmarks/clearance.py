"""Clearance goals: answers checked by coal, thousands of obstacles far away, a published set, ticks, walls, methods.

    python benchmarks/clearance.py [--parts coal far demo ticks walls methods million misses] [--answers 100000]

- coal: answers of ``solve_many`` called reached, of a Panda with spheres among spheres and boxes, and of an arm with
  shapes of all kinds among obstacles of all kinds. Each pair of solids whose bounding spheres are near is measured by
  coal (``pip install coal`` in this environment); the kinematics of the Panda are NumPy's.
- million: of the Panda alone, until ``--answers`` answers are called reached; not among the default parts. Each is also
  measured by closed forms in NumPy, and its hand is compared with the target. ``solve_many`` has one thread.
- misses: of 30 arms among obstacles, whose targets are out of reach, beside an obstacle or inside one, once with boxes,
  once with hulls and cylinders of the same sizes: time and status; not among the default parts.
- far: the time of a solve among 10 to 10,000 boxes that are out of reach, and of building the problem.
- demo: the problems of ``worlds/robometrics_demo_set.yaml``: poses of the hand in the goals, without clearance to keep.
- ticks: solves of a Unitree G1 that follow a moving hand target, from frame to frame, with and without itself to avoid.
- walls: hands whose targets move 2 mm a frame into walls, edges, corners and flat faces, along them, and stop: the
  largest step of a joint in one frame, how far joints move back and forth, and how far where the target has stopped.
  One attempt a frame, so that no frame starts anew.
- methods: the targets of ``clearance_peers.py``, the same for each solver that keeps clear, with as many attempts for
  all and with its own number of them; targets are judged reached by NumPy.

Times are CPU time of the process, the least of several rounds.
"""

import argparse
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from clearance_peers import (
    BASE,
    GAP,
    HOME,
    OBSTACLES,
    TIP,
    WORLDS,
    Arm,
    errors,
    judged,
    random_clear,
    random_world,
    spheres_and_pairs,
    write_urdf,
)
from coal_solids import geometry
from common import machine, needed_data, save, table, verdicts

import synovia as sy

EXACT = 1e-6  # metres: what a distance may lack by another library
AT_ONCE = 5000  # targets
MILLION_WORLDS = 20
ROUNDS = 5
G1_HANDS = ("left_hand_palm_joint", "right_hand_palm_joint")
FRAMES = 400
REST, SWING = 1e-4, 0.02  # radians


def world_of(case):
    """Return the world of a case."""
    solids = {
        f"o{k}": sy.Sphere(radius=size) if kind == "sphere" else sy.Box(size=size)
        for k, (kind, _, size) in enumerate(case["world"])
    }
    return sy.World(solids).moved({f"o{k}": np.array(T) for k, (_, T, _) in enumerate(case["world"])})


def panda(data, folder):
    """Return the arm by NumPy, the body, and the pairs of links that count."""
    spheres, pairs = spheres_and_pairs(data)
    arm = Arm(data / "robot" / "panda.urdf", spheres)
    write_urdf(arm, folder / "panda.urdf")
    return arm, sy.load_skeleton(folder / "panda.urdf"), pairs


def least_by_coal(frames, solids, pairs, most=0.05):
    """Return the least distance of each pose by coal, infinite where no pair of bounding spheres is within ``most``.

    Args:
        frames: Transforms of the links of all poses by name, (n, 4, 4); none for the world.
        solids: Pairs (link, shape) by number.
        pairs: Pairs of numbers.
        most: Length.
    """
    import coal

    made = [geometry(shape) for _, shape in solids]
    places = [None if link is None else frames[link] @ shape.place() for link, shape in solids]
    least = np.full(len(next(iter(frames.values()))), np.inf)
    measured = 0
    asked, answer = coal.DistanceRequest(), coal.DistanceResult()
    asked.enable_signed_distance = True
    for a, b in pairs:
        size = sum(np.inf if s.word == "half-space" else reach(s) for _, s in (solids[a], solids[b]))
        A, B = (solids[k][1].place()[None] if places[k] is None else places[k] for k in (a, b))
        near = np.linalg.norm(A[:, :3, 3] - B[:, :3, 3], axis=1) <= size + most
        for k in np.flatnonzero(near):
            T, S = A[k if len(A) > 1 else 0], B[k if len(B) > 1 else 0]
            answer.clear()
            found = coal.distance(made[a], coal.Transform3s(T[:3, :3], T[:3, 3]),
                                  made[b], coal.Transform3s(S[:3, :3], S[:3, 3]), asked, answer)  # fmt: skip
            least[k] = min(least[k], found)
            measured += 1
    return least, measured


def reach(shape):
    """Return the radius of a sphere around the middle of a shape that contains it."""
    x, y, z, radius = shape.sizes()
    if isinstance(shape, sy.ConvexHull):
        return float(np.linalg.norm(shape.corners(), axis=1).max()) + radius
    return float(np.linalg.norm([x, y, z])) + 2 * radius


def mixed_arm():
    """Return the bundled arm with shapes of all kinds."""
    rng = np.random.default_rng(3)
    hull = sy.ConvexHull(rng.uniform([-0.06, -0.05, -0.2], [0.06, 0.08, 0.02], (16, 3)))
    return sy.with_shapes(
        sy.bundled("arm7"),
        {
            "joint5": [hull],
            "joint6": [sy.Cylinder(center=(0.045, 0, 0), radius=0.07, length=0.12)],
            "hand": [sy.Box(center=(0, 0, 0.04), size=(0.06, 0.2, 0.08)), sy.Sphere(center=(0, 0, 0.1), radius=0.02)],
        },
    )


def mixed_world(rng):
    """Return obstacles of all kinds out of the room of the first links."""
    found = {"floor": sy.HalfSpace(point=(0, 0, -0.05 - 0.1 * rng.random()), normal=(0.1 * rng.random(), 0, 1))}
    for k in range(OBSTACLES):
        c = rng.uniform([-0.8, -0.8, 0.0], [0.8, 0.8, 1.1])
        s = rng.uniform(0.03, 0.12, 3)
        if np.hypot(*c[:2]) < 0.4 and c[2] < 0.7:
            continue
        turn = sy.Rotation.from_rotvec(rng.normal(size=3))
        found[f"o{k}"] = (
            sy.Sphere(center=c, radius=s[0]),
            sy.Capsule(a=c, b=c + 0.15 * rng.normal(size=3), radius=0.4 * s[0]),
            sy.Box(center=c, size=2 * s, rotation=turn),
            sy.Cylinder(center=c, radius=s[0], length=2 * s[1], rotation=turn),
            sy.ConvexHull(c + 0.07 * rng.normal(size=(12, 3))),
        )[k % 5]
    return sy.World(found)


def by_coal(data, folder, answers):
    """Return rows of answers checked by coal, and bars."""
    rows, bars = [], []
    arm, body, pairs = panda(data, folder)
    rng = np.random.default_rng(5)
    worlds, each = 10, max(answers // 20, 1)
    for title in ("Panda, spheres", "arm7, all kinds"):
        total, checked, lowest, wrong = 0, 0, np.inf, 0
        for number in range(worlds):
            if title.startswith("Panda"):
                case = {"world": random_world(rng), "pairs": pairs}
                world, skeleton, tip = world_of(case), body, TIP
                targets = arm.forward(random_clear(arm, case, rng, each))[:, arm.links.index(TIP)]
                goal, counted = sy.PoseGoal(TIP), ["world", *pairs]
            else:
                world, skeleton, tip = mixed_world(np.random.default_rng(number)), mixed_arm(), "tool"
                low, high = skeleton.limits
                q = rng.uniform(np.maximum(low, -np.pi), np.minimum(high, np.pi), (each, len(low)))
                targets = frames_of(skeleton, q)[:, skeleton.index(tip), :3, 3]
                goal, counted = sy.PositionGoal(tip), None
            ik = sy.IK(skeleton, [goal, sy.ClearanceGoal(GAP, world=world, pairs=counted)])
            many = ik.solve_many(targets)
            q = many.q[many.reached]
            total += len(many.q)
            links = list(skeleton.shapes)
            if title.startswith("Panda"):
                all_frames = arm.forward(q)
                frames = {link: all_frames[:, arm.links.index(str(link))] for link in links}
                named = pairs
            else:
                all_frames = frames_of(skeleton, q)
                frames = {link: all_frames[:, skeleton.index(link)] for link in links}
                named = sy.shapes.self_pairs(skeleton).pairs
            solids = [(link, shape) for link in links for shape in skeleton.shapes[link]]
            own = len(solids)
            solids += [(None, shape) for name in world.names for shape in world[name].solids()]
            wanted = {frozenset(pair) for pair in named}
            tested = [(a, b) for a in range(own) for b in range(a) if frozenset((solids[a][0], solids[b][0])) in wanted]
            still = BASE if title.startswith("Panda") else "base"
            tested += [(a, b) for a in range(own) if solids[a][0] != still for b in range(own, len(solids))]
            least, _ = least_by_coal(frames, solids, tested)
            checked += len(q)
            lowest = min(lowest, float(least.min()))
            wrong += int((least < GAP - EXACT).sum())
        rows.append([title, total, f"{100 * checked / total:.1f}", checked, f"{1e3 * lowest:.6f}", wrong])
        bars.append((f"{title}: no answer called reached is nearer than 1 cm, by coal", wrong == 0))
    return rows, bars


def million(data, folder, answers):
    """Return a row for each world of answers of the Panda that are called reached, and bars."""
    rows, bars = [], []
    arm, body, pairs = panda(data, folder)
    hand, wanted = arm.links.index(TIP), {frozenset(pair) for pair in pairs}
    links = list(body.shapes)
    totals = np.zeros(5, np.int64)
    lowest, farthest = np.full(2, np.inf), np.zeros(2)
    for number in range(MILLION_WORLDS):
        rng = np.random.default_rng([2, number])
        case = {"world": random_world(rng), "pairs": pairs}
        world = world_of(case)
        solids = [(link, shape) for link in links for shape in body.shapes[link]]
        own = len(solids)
        solids += [(None, shape) for name in world.names for shape in world[name].solids()]
        tested = [(a, b) for a in range(own) for b in range(a) if frozenset((solids[a][0], solids[b][0])) in wanted]
        tested += [(a, b) for a in range(own) if solids[a][0] != BASE for b in range(own, len(solids))]
        ik = sy.IK(body, [sy.PoseGoal(TIP), sy.ClearanceGoal(GAP, world=world, pairs=["world", *pairs])])
        counts = np.zeros(5, np.int64)  # targets, reached, pairs measured, too near by coal, by NumPy
        least, away = np.full(2, np.inf), np.zeros(2)
        while counts[1] < answers / MILLION_WORLDS:
            targets = arm.forward(random_clear(arm, case, rng, AT_ONCE))[:, hand]
            many = ik.solve_many(targets, HOME, threads=1)
            q = many.q[many.reached]
            frames = arm.forward(q)
            of_link = {link: frames[:, arm.links.index(str(link))] for link in links}
            by_coal, measured = least_by_coal(of_link, solids, tested, GAP)
            by_numpy = np.minimum(*arm.gaps(q, case))
            counts += [len(targets), len(q), measured, (by_coal < GAP - EXACT).sum(), (by_numpy < GAP - EXACT).sum()]
            least = np.minimum(least, [by_coal.min(), by_numpy.min()])
            away = np.maximum(away, [e.max() for e in errors(frames[:, hand], targets[many.reached])])
        totals, lowest, farthest = totals + counts, np.minimum(lowest, least), np.maximum(farthest, away)
        rows.append(row_of(number, counts, least, away))
        print(*rows[-1], flush=True)
    rows.append(row_of("all", totals, lowest, farthest))
    bars = [
        (f"{totals[1]} answers called reached, at least {answers}", bool(totals[1] >= answers)),
        ("none of them is nearer than 1 cm, by coal", bool(totals[3] == 0)),
        ("none of them is nearer than 1 cm, by NumPy", bool(totals[4] == 0)),
    ]
    return rows, bars


def row_of(name, counts, least, away):
    """Return a row of answers: counts, least distances by coal and NumPy, largest errors of the hand."""
    targets, reached, measured, *near = (int(count) for count in counts)
    share, lengths = f"{100 * reached / targets:.3f}", [f"{1e3 * x:.6f}" for x in least]
    return [name, targets, reached, share, measured, *lengths, *near, f"{1e3 * away[0]:.4f}", f"{1e3 * away[1]:.4f}"]


def frames_of(skeleton, q):
    """Return transforms of all joints, (n, joints, 4, 4)."""
    from synovia.model.geometry import frames_to_transforms
    from synovia.model.pose import world_frames

    return frames_to_transforms(world_frames(skeleton, q))


def least_time(work, rounds=ROUNDS):
    """Return the least CPU time of a call, seconds."""
    best = np.inf
    for _ in range(rounds):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


def stone(word, rng, size):
    """Return corners or sizes of a box, or of a hull or cylinder inside it, about the origin."""
    if word == "boxes":
        return sy.Box(size=2 * size)
    if rng.random() < 0.5:
        return sy.Cylinder(radius=size[:2].min(), length=2 * size[2])
    points = rng.normal(size=(200, 3))
    points = np.sign(points) * np.abs(points / np.linalg.norm(points, axis=1)[:, None]) ** 0.6
    return sy.ConvexHull(points * size)


def missed_arm(seed, word):
    """Return an arm of six to eight hinges with two shapes a link, and 15 to 40 obstacles."""
    rng, own = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    joints, above = [], np.eye(4)
    for k in range(int(rng.integers(6, 9))):
        length = rng.uniform(0.12, 0.35)
        middle = np.eye(4)
        middle[2, 3] = 0.5 * length
        shapes = [stone(word, own, np.array([*rng.uniform(0.03, 0.06, 2), 0.5 * length])).moved(middle) for _ in "ab"]
        axis = np.eye(3)[2 if k == 0 else int(rng.integers(3))]
        limit = sy.Interval(-rng.uniform(1.5, 2.9), rng.uniform(1.5, 2.9))
        joints.append(
            sy.Joint(f"j{k}", f"j{k - 1}" if k else None, sy.Kind.HINGE, above, axis=axis, limit=limit, shapes=shapes)
        )
        above = np.eye(4)
        above[2, 3] = length
    found = {"floor": sy.HalfSpace(point=(0, 0, -0.1))}
    for k in range(int(rng.integers(15, 40))):
        T = np.eye(4)
        T[:3, 3] = rng.uniform([-1, -1, 0], [1, 1, 1.4])
        T[:3, :3] = sy.Rotation.from_quat(rng.normal(size=4)).as_matrix()
        size = rng.uniform(0.05, 0.2, 3)
        if np.linalg.norm(T[:3, 3]) > 0.45:
            found[f"o{k}"] = stone(word, own, size).moved(T)
    return sy.Skeleton([*joints, sy.Joint("tip", joints[-1].name, rest=above, tip=True)]), sy.World(found)


def misses(problems=1000, bodies=30):
    """Return rows of misses by the shapes of arms and obstacles, and bars."""
    rows, slow = [], {}
    for word in ("boxes", "hulls and cylinders"):
        spent, statuses, errors = [], Counter(), []
        for seed in range(bodies):
            body, world = missed_arm(seed, word)
            rng = np.random.default_rng([seed, 3])
            kind = sy.PositionGoal if seed % 2 else sy.PoseGoal
            ik = sy.IK(body, [kind("tip"), sy.ClearanceGoal(0.02, world=world)], "lm")
            ik.precompile()  # what is measured is solving
            ik.solve()
            for k in range(-(-problems // bodies)):
                T = np.eye(4)
                T[:3, :3] = sy.Rotation.from_quat(rng.normal(size=4)).as_matrix()
                way = rng.normal(size=3)
                T[:3, 3] = ik.reach * rng.uniform(*((1.02, 1.4) if k % 2 else (0.05, 0.4))) * way / np.linalg.norm(way)
                if k % 4 == 0:
                    inside = world[world.names[1 + int(rng.integers(len(world.names) - 1))]]
                    T[:3, 3] = inside.solids()[0].place()[:3, 3]
                start = body.random_pose(int(rng.integers(2**30)))
                begun = time.thread_time()
                answer = ik.solve({"tip": T if kind is sy.PoseGoal else T[:3, 3]}, start)
                if not answer.reached:
                    spent.append(1e3 * (time.thread_time() - begun))
                    errors.append(np.hypot(answer.errors[0].position / ik.reach, answer.errors[0].angle))
                statuses[answer.status.name] += 1
        at = np.quantile(spent, [0.5, 0.9, 0.99, 1.0])
        slow[word] = at[2]
        said = ", ".join(f"{name.lower()} {count}" for name, count in statuses.most_common())
        rows.append([word, len(spent), said, f"{np.mean(errors):.4f}", *(f"{t:.0f}" for t in at)])
    ratio = slow["hulls and cylinders"] / slow["boxes"]
    return rows, [(f"the slowest 1 % take {ratio:.2f} times as long as those with boxes, at most 1.1", ratio <= 1.1)]


def far_away():
    """Return rows for 10 to 10,000 boxes, and bars."""
    arm, rng, rows, medians = sy.bundled("arm7"), np.random.default_rng(0), [], []
    counts = (0, 10, 100, 1000, 10000)
    targets = [arm.random_pose(seed).transform("tool") for seed in range(100)]
    sy.shapes.self_pairs(arm)
    for count in counts:
        middles = rng.normal(size=(count, 3))
        middles *= (rng.uniform(3.0, 12.0, count) / np.linalg.norm(middles, axis=1))[:, None]
        boxes = [sy.Box(center=c, size=s) for c, s in zip(middles, rng.uniform(0.05, 0.3, (count, 3)), strict=True)]
        world = sy.World({f"b{k}": box for k, box in enumerate(boxes)}) if count else None
        goals = [sy.PoseGoal("tool"), sy.ClearanceGoal(GAP, world=world)]
        ik = sy.IK(arm, goals)
        built = least_time(lambda goals=goals: sy.IK(arm, goals), 3)
        spent = [least_time(lambda T=T, ik=ik: ik.solve({"tool": T})) for T in targets]
        medians.append(1e3 * float(np.median(spent)))
        rows.append([count, f"{medians[-1]:.3f}", f"{1e3 * built:.1f}"])
    slope = float(np.polyfit(np.log(counts[1:]), np.log(medians[1:]), 1)[0])
    return rows, [(f"slope of the median in log-log {slope:.3f}, below 0.5", slope < 0.5)]


def demo_set(data, folder):
    """Return rows for the published problems, and bars."""
    import yaml

    arm, body, pairs = panda(data, folder)
    rows, bars = [], []
    problems = yaml.safe_load((data / "worlds" / "robometrics_demo_set.yaml").read_text())
    for name, cases in problems.items():
        for number, case in enumerate(cases):
            solids, places = {}, {}
            for kind, items in case["obstacles"].items():
                for key, item in items.items():
                    x, y, z, *turn = item["pose"]
                    places[key] = (x, y, z), sy.Rotation.from_quat(np.roll(turn, -1))
                    if kind == "cuboid":
                        solids[key] = sy.Box(size=item["dims"])
                    else:
                        solids[key] = sy.Cylinder(radius=item["radius"], length=item["height"])
            world = sy.World(solids).moved(places)
            ik = sy.IK(body, [sy.PoseGoal(TIP), sy.ClearanceGoal(0.0, world=world, pairs=["world", *pairs])])
            goals = np.array(case["goal_ik"]).reshape(-1, len(HOME))
            targets = arm.forward(goals)[:, arm.links.index(TIP)]
            answers = [ik.solve({TIP: T}, start=HOME) for T in targets]
            spent = [least_time(lambda T=T, ik=ik: ik.solve({TIP: T}, start=HOME)) for T in targets]
            share = np.mean([a.reached for a in answers])
            first = "yes" if answers[0].reached else "no"
            share, median = f"{100 * share:.0f}", f"{1e3 * np.median(spent):.2f}"
            rows.append([f"{name} {number}", len(solids), len(targets), share, first, median])
            bars.append((f"{name} {number}: a goal is reached", any(a.reached for a in answers)))
    return rows, bars


def ticks(data):
    """Return rows of a humanoid's solves from frame to frame, and bars."""
    body = sy.with_shapes(sy.load_skeleton(data / "robot" / "g1_29dof.urdf"))
    hand = G1_HANDS[1]
    rows, bars = [], []
    rest = body.rest_pose()
    feet = ["left_ankle_roll_joint", "right_ankle_roll_joint"]
    for title, root, fixed in (("arm and trunk", "fixed", []), ("whole body", "free", feet)):
        goals = [
            sy.PositionGoal(hand),
            *[sy.PoseGoal(foot, *split(rest.transform(foot)), priority=0) for foot in fixed],
        ]
        t = np.linspace(0, 2 * np.pi, FRAMES)
        for path, size in (("free", 0.05), ("across the chest", 0.25)):
            middle = rest.position(hand)
            way = middle + np.stack([0.1 + size * (1 - np.cos(t)) / 2, size * np.sin(t), 0.15 + 0 * t], axis=1)
            way[:, 1] += 0.0 if path == "free" else 0.2
            took = {}
            for clear in (False, True):
                ik = sy.IK(body, goals + [sy.ClearanceGoal(0.01)] * clear, sy.FullBody(attempts=1), root=root)
                runs = []
                for _ in range(ROUNDS):
                    pose, spent = rest if root == "fixed" else ik.solve({hand: way[0]}).pose, np.empty(FRAMES)
                    for k, p in enumerate(way):
                        begun = time.process_time_ns()
                        solution = ik.solve({hand: p}, start=pose, follow=True)
                        spent[k] = 1e-3 * (time.process_time_ns() - begun)
                        pose = solution.pose
                    runs.append(spent)
                took[clear] = float(np.median(np.min(runs, axis=0)))
            ratio = took[True] / took[False]
            rows.append([f"{title}, {path}", f"{took[False]:.0f}", f"{took[True]:.0f}", f"{ratio:.2f}"])
            bars.append((f"{title}, {path}: {ratio:.2f} times, at most 2", ratio <= 2.0))
    return rows, bars


def split(T):
    """Return the place and the rotation of a transform."""
    return T[:3, 3], sy.Rotation.from_matrix(T[:3, :3])


def pressed():
    """Yield a name, a problem, the goal's joint and targets before a wall for each hand that is pressed."""
    flat = {"hand": [sy.Box(center=(0, 0, 0.05), size=(0.05, 0.2, 0.1))]}
    arms = {"arm7": sy.bundled("arm7"), "arm7 with a box": sy.with_shapes(sy.bundled("arm7"), flat)}
    walls = {
        "wall": sy.World({"wall": sy.Box(center=(0.55, 0, 0.4), size=(0.1, 3, 3))}),
        "half-space": sy.World({"wall": sy.HalfSpace(point=(0.5, 0, 0), normal=(-1, 0, 0))}),
        "edge": sy.World({"box": sy.Box(center=(0.6, 0, 0.2), size=(0.2, 1, 0.4))}),
        "corner": sy.World(
            {
                "wall": sy.HalfSpace(point=(0.5, 0, 0), normal=(-1, 0, 0)),
                "side": sy.HalfSpace(point=(0, 0.15, 0), normal=(0, -1, 0)),
            }
        ),
        "wedge": sy.World(
            {
                "wall": sy.Box(center=(0.6, 0, 0.4), size=(0.2, 3, 3)),
                "floor": sy.Box(center=(0.4, 0, 0.1), size=(0.5, 1, 0.2)),
            }
        ),
        "bar": sy.World({"bar": sy.Cylinder(center=(0.5, 0, 0.4), radius=0.03, length=1.0)}),
    }
    for body, arm in arms.items():
        for wall, world in walls.items():
            for kind in (sy.PositionGoal, sy.PoseGoal):
                yield f"{body}, {wall}, {kind.__name__}", arm, "tool", kind, world, 0.01
    humanoid = sy.bundled("humanoid")
    yield "humanoid, its chest, PositionGoal", humanoid, "left_hand", sy.PositionGoal, None, 0.0


def swings(q):
    """Return by how much a joint moves back and forth within three frames, the largest of each."""
    steps = np.diff(q, axis=0)
    back = steps[1:] * steps[:-1] < 0.0
    return np.where(back, np.minimum(np.abs(steps[1:]), np.abs(steps[:-1])), 0.0).max(axis=1)


def walls():
    """Return rows of pressed hands, and bars."""
    rows, bars = [], []
    into = np.stack([np.linspace(0.4, 0.54, 70), np.zeros(70), np.full(70, 0.38)], axis=1)
    across = np.concatenate([np.linspace(0, 0.1, 50), np.linspace(0.1, -0.1, 100)])
    across = np.stack([np.full(150, 0.54), across, np.full(150, 0.38)], axis=1)
    for title, body, tip, kind, world, gap in pressed():
        if world is None:
            inside = body.rest_pose().position("chest") + np.array([0.0, 0.0, 0.1])
            way = inside + np.stack(
                [np.linspace(0.3, -0.1, 220), 0.1 * np.sin(np.linspace(0, 6, 220)), np.zeros(220)], 1
            )
        else:
            way = np.concatenate([into, across])
        way = np.concatenate([way, np.repeat(way[-1:], 30, axis=0)])
        targets = way
        if kind is sy.PoseGoal:
            targets = np.tile(np.eye(4), (len(way), 1, 1))
            targets[:, :3, :3] = sy.Rotation.from_euler("y", 90, degrees=True).as_matrix()
            targets[:, :3, 3] = way
        goals = [kind(tip), sy.ClearanceGoal(gap, world=world)]
        start = sy.IK(body, goals).solve({tip: targets[0]}).pose
        begun = time.process_time()
        clip = sy.IK(body, goals, sy.FullBody(attempts=1)).track({tip: targets}, start=start)
        spent = 1e3 * (time.process_time() - begun) / len(way)
        steps = np.abs(np.diff(clip.q, axis=0)).max(axis=1)
        moving, rest = steps[:-30], steps[-25:].max()
        lacking = max(gap - min((c.distance for c in s.contacts), default=1.0) for s in list(clip)[::3])
        rows.append([title, f"{np.median(moving):.4f}", f"{moving.max():.3f}", f"{swings(clip.q).max():.4f}",
                     f"{rest:.1e}", f"{1e3 * max(lacking, 0.0):.4f}", f"{spent:.2f}"])  # fmt: skip
        bars.append((f"{title}: rests where the target rests", bool(rest < REST)))
        bars.append(
            (f"{title}: no joint moves back and forth by more than 0.02 rad", bool(swings(clip.q).max() < SWING))
        )
        bars.append((f"{title}: keeps its distance", bool(lacking < EXACT)))
    return rows, bars


def methods(data, folder, targets=200, attempts=30):
    """Return rows of the solvers that keep clear, and bars."""
    arm, body, pairs = panda(data, folder)
    names = ("full-body", "lm", "dls", "pinv")
    tried = [(name, sy.solvers[name](attempts=attempts)) for name in names]
    tried += [(name, sy.solvers[name]()) for name in names]
    rng, found = np.random.default_rng(1), [[] for _ in tried]
    for _ in range(WORLDS):
        case = {"world": random_world(rng), "pairs": pairs}
        goals = [sy.PoseGoal(TIP), sy.ClearanceGoal(GAP, world=world_of(case), pairs=["world", *pairs])]
        iks = [sy.IK(body, goals, solver) for _, solver in tried]
        for T in arm.forward(random_clear(arm, case, rng, targets // WORLDS))[:, arm.links.index(TIP)]:
            for answers, ik in zip(found, iks, strict=True):
                q = ik.solve({TIP: T}, start=HOME).q
                spent = least_time(lambda T=T, ik=ik: ik.solve({TIP: T}, start=HOME), 3)
                answers.append((judged(arm, case, q, T), 1e3 * spent))
    rows, shares = [], {}
    for (name, solver), answers in zip(tried, found, strict=True):
        reached, spent = np.array(answers).T
        shares[name, solver.attempts] = 100 * reached.mean()
        at = np.quantile(spent, [0.5, 0.9, 0.99])
        rows.append([name, solver.attempts, len(spent), f"{100 * reached.mean():.1f}", *(f"{t:.3f}" for t in at)])
    lacking = shares["full-body", attempts] - shares["lm", attempts]
    bars = [(f"lm reaches {lacking:.1f} % less than full-body with as many attempts, at most 0.5", lacking <= 0.5)]
    return rows, bars


def main():
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("coal", "far", "demo", "ticks", "walls", "methods")
    parser.add_argument("--parts", nargs="*", choices=(*parts, "million", "misses"), default=parts)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--problems", type=int, default=1000, help="of misses")
    options = parser.parse_args()
    where, data = machine(), None if options.parts == ["misses"] else needed_data()
    all_held = True
    heads = {
        "coal": ["answers", "targets", "reached %", "checked", "least distance mm", "too near"],
        "million": ["world", "targets", "reached", "reached %", "pairs measured", "least mm, coal", "least mm, NumPy",
                    "too near, coal", "too near, NumPy", "largest error mm", "largest error mrad"],
        "misses": ["shapes", "misses", "status", "mean error", "median ms", "p90 ms", "p99 ms", "most ms"],
        "far": ["boxes", "solve ms", "build ms"],
        "demo": ["problem", "obstacles", "goals", "reached %", "first goal", "median ms"],
        "ticks": ["G1", "without µs", "with µs", "ratio"],
        "methods": ["solver", "attempts", "targets", "reached %", "median ms", "p90 ms", "p99 ms"],
        "walls": ["hand", "median step rad", "largest step rad", "back and forth rad", "at rest rad", "lacks mm",
                  "ms a frame"],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        works = {
            "coal": lambda: by_coal(data, folder, options.answers),
            "million": lambda: million(data, folder, options.answers),
            "misses": lambda: misses(options.problems),
            "far": far_away,
            "demo": lambda: demo_set(data, folder),
            "ticks": lambda: ticks(data),
            "walls": walls,
            "methods": lambda: methods(data, folder),
        }
        for part in options.parts:
            if part in ("coal", "million") and find_spec("coal") is None:
                print(f"{part}: coal is not installed here, left out")
                continue
            rows, bars = works[part]()
            told, held = verdicts(bars)
            all_held &= held
            found = {"rows": [dict(zip(heads[part], row, strict=True)) for row in rows]}
            save(f"clearance_{part}", f"Clearance goals: {part}", found, f"{table(heads[part], rows)}\n\n{told}", where)
    raise SystemExit(0 if all_held else 1)


if __name__ == "__main__":
    main()
