"""Random trees with joints of every kind, for the tests of kernels and goals."""

import numpy as np

import synovia as sy


def random_frame(rng, length=1.0):
    """Return a random rigid transform."""
    frame = np.eye(4)
    quat = rng.normal(size=4)
    frame[:3, :3] = sy.Rotation.from_quat(quat / np.linalg.norm(quat)).as_matrix()
    frame[:3, 3] = length * rng.normal(size=3)
    return frame


def random_tree(rng, joints=9, free=False, mimic=True, limits=False, bounded=True, mass=False, held=False):
    """Return a random tree with joints of every kind; with ``held`` also free joints anywhere."""
    made = []
    hinges = []
    for i in range(joints):
        kinds = [sy.Kind.HINGE, sy.Kind.SLIDE, sy.Kind.BALL, sy.Kind.FIXED, *[sy.Kind.FREE] * (2 * held)]
        kind = sy.Kind.FREE if free and i == 0 else kinds[int(rng.integers(len(kinds)))]
        parent = None if i == 0 else f"j{int(rng.integers(max(0, i - 3), i))}"
        follow = None
        if mimic and kind is sy.Kind.HINGE and hinges and rng.random() < 0.4:
            follow = sy.Mimic(hinges[0], float(rng.normal()), float(rng.normal()))
        elif kind is sy.Kind.HINGE:
            hinges.append(f"j{i}")
        limit = None
        if kind is sy.Kind.SLIDE and bounded:
            limit = sy.Interval(-rng.random(), rng.random())
        elif limits and kind is sy.Kind.HINGE and follow is None:
            limit = sy.Interval(-3 * rng.random(), 3 * rng.random())
        elif limits and kind is sy.Kind.BALL:
            a = rng.uniform(0.2, 2.5, 4)
            limit = sy.SwingTwist.about(
                rng.normal(size=3), x=(a[0], a[1]), y=(a[2], a[3]), twist=(-rng.random(), rng.random())
            )
        rest, axis = random_frame(rng), rng.normal(size=3)
        body = {"mass": float(rng.uniform(0, 2)), "com": rng.normal(size=3)} if mass else {}
        made.append(sy.Joint(f"j{i}", parent, kind, rest, axis=axis, limit=limit, mimic=follow, **body))
    return sy.Skeleton(made)
