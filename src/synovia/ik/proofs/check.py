"""The checker of proofs: NumPy only, without any code of the search; short enough to read and to copy."""
# pyright: basic

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
RIDGE = 0.05  # ridge (regularization) of the least squares in ``smaller``
LEAST = 0.05  # an interval shrinks only if its joint's coefficient in its own equation is at least this
MOST_BOXES = 40_000_000  # largest number of boxes for a map: some ten seconds


def ball(fixed: Array, kinds: Array, m: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return centres and radii of balls that contain the tip in boxes m ± w (B, n), and bounds of tip speed (B, n)."""
    p, r, D = np.tile(fixed[-1, :, 3], (len(m), 1)), np.zeros(len(m)), np.zeros(m.shape)
    for i in reversed(range(len(kinds))):
        turns, slides = kinds[i] == 0, kinds[i] == 1
        c, s, a = np.cos(turns * m[:, i]), np.sin(turns * m[:, i]), turns * np.clip(w[:, i], 0, np.pi / 2)
        rho, (x, y, z) = np.hypot(p[:, 0], p[:, 1]), p.T
        D[:, i], r = slides + turns * (rho + r), r + rho * np.sin(a) + slides * w[:, i]
        p = np.stack([np.cos(a) * (c * x - s * y), np.cos(a) * (s * x + c * y), z + slides * m[:, i]], axis=1)
        p = p @ fixed[i, :, :3].T + fixed[i, :, 3]
    return p, r, D


def taylor(fixed: Array, kinds: Array, m: Array, w: Array, D: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return x (B, 3), A (B, 3, n), Q (B, 3, n (n + 1) / 2), and two bounds (B,), for boxes m ± w and speeds D (B, n).

    At the joint values m + w u, with u from -1 to 1, the tip is x + A u, with an error up to the first bound. It is
    also x + A u + Q v, with an error up to the second bound; v has the products of two elements of u.
    """
    T, x, axes, at = np.tile(np.eye(3), (len(m), 1, 1)), np.zeros((len(m), 3)), [], []
    for i, kind in enumerate(kinds):
        x, T = x + T @ fixed[i, :, 3], T @ fixed[i, :, :3]
        axes, at = [*axes, T[:, :, 2]], [*at, x]
        c, s = np.cos((kind == 0) * m[:, i, None]), np.sin((kind == 0) * m[:, i, None])
        x = x + (kind == 1) * m[:, i, None] * T[:, :, 2]
        T = np.stack([c * T[..., 0] + s * T[..., 1], c * T[..., 1] - s * T[..., 0], T[..., 2]], axis=-1)
    x, z = x + T @ fixed[-1, :, 3], np.reshape(axes, (len(kinds), len(m), 3))
    J = [a if kind == 1 else (kind == 0) * np.cross(a, x - o) for kind, a, o in zip(kinds, axes, at, strict=True)]
    A, t, (i, j) = np.reshape(J, z.shape) * w.T[..., None], w * (kinds == 0), np.triu_indices(len(kinds))
    Q = np.cross(z[i], A[j]) * (t.T[i] * np.where(i == j, 0.5, 1.0)[:, None])[..., None]
    S = np.cumsum(t, axis=1) - t  # the rotations before each joint
    second, third = (D * w * (S + t / 2)).sum(1), (D * w * (S**2 + S * t + t**2 / 3)).sum(1) / 2
    return x, np.moveaxis(A, 0, 2), np.moveaxis(Q, 0, 2), second, third


def smaller(boxes: Array, A: Array, b: Array, Q: Array, rests: Array) -> Array:
    """Return boxes (B, n, 2) without margins in which A u + Q v = b, of shape (B, 3 parts, ...), cannot hold.

    See ``taylor``. ``rests`` (B, parts, 3) has, for each part, the distance that counts as near, and the two bounds.
    """
    m, w, n = boxes.mean(axis=-1), (boxes[..., 1] - boxes[..., 0]) / 2, boxes.shape[1]
    Y = np.linalg.solve(np.swapaxes(A, 1, 2) @ A + RIDGE * np.eye(n), np.swapaxes(A, 1, 2))
    G, size = Y @ A, np.linalg.norm(Y.reshape(len(Y), n, rests.shape[1], 3), axis=3)
    own, (near, second, third) = np.diagonal(G, axis1=1, axis2=2), np.moveaxis(size @ rests, 2, 0)
    h = np.abs(G).sum(2) - np.abs(own) + near + np.minimum(second, third + np.abs(Y @ Q).sum(2))
    c = (Y @ b[..., None])[..., 0]
    low, high = (np.where(own < LEAST, end, (c + end * h) / own) for end in (-1, 1))
    return m[..., None] + w[..., None] * np.stack([np.maximum(low, -1), np.minimum(high, 1)], axis=2)


@np.errstate(all="ignore")  # a wrong proof may divide by zero; no comparison with nan is true
def excludes(fixed: Array, kinds: Array, limits: Array, targets: Array, near: Array, tokens: Array) -> bool:
    """Return whether tokens prove that no joint values within the limits bring all parts near their targets.

    Parts are points, or directions as points at distance 1 from the origin. Joints turn about, or slide along, their
    own z axes.

    Args:
        fixed: (parts, n + 1, 3, 4) transforms of each part: before each joint, and from the last joint to the tip.
        kinds: (parts, n) 0 if the joint turns the part, 1 if it slides it, -1 if it does not move it.
        limits: (n, 2) lower and upper limits, radians or length units.
        targets: (parts, 3) target of each part, length units.
        near: (parts,) the distance of each part that counts as near, length units.
        tokens: (t,) what happens to each box of joint values, level by level: -1, it is empty; -2 - 2p, a ball that
            contains the tip of part p excludes it; -3 - 2p, it is too short in the direction of the target of part p;
            from 0 to n - 1, the joint whose interval is halved; n, all intervals shrink.
    """
    n, boxes, near = len(limits), limits[None], near + 1e-10 * np.abs(fixed[..., 3]).sum((1, 2))  # margin for rounding
    while 0 < len(boxes) <= len(tokens):
        now, tokens = tokens[: len(boxes)], tokens[len(boxes) :]
        m, w = boxes.mean(axis=-1), (boxes[..., 1] - boxes[..., 0]) / 2
        held, equations = np.where(now == -1, (w < 0).any(1), (now >= 0) & (now <= n)), []
        for p, (frames, moves, target, most) in enumerate(zip(fixed, kinds, targets, near, strict=True)):
            rows = np.flatnonzero((now == n) | (now == -2 - 2 * p) | (now == -3 - 2 * p))
            c, r, D = ball(frames, moves, m[rows], w[rows])
            x, A, Q, second, third = taylor(frames, moves, m[rows], w[rows], D)
            e, d = target - x, np.linalg.norm(target - x, axis=1)
            along, across = (np.abs(e[:, None] @ part).sum((1, 2)) for part in (A, Q))
            short = d**2 > along + np.minimum(second * d, across + third * d) + most * d
            apart = np.linalg.norm(c - target, axis=1) > r + most
            held[rows] = np.where(now[rows] == n, held[rows], np.where(now[rows] == -2 - 2 * p, apart, short))
            unit, left = second + most, now[rows] == n
            rests = np.stack([most + 0 * d, second, third], axis=1)
            equations.append([(part.T / unit).T[left] for part in (A, e, Q, rests[:, None])])
        if not held.all():
            return False
        h, s, out = np.flatnonzero((now >= 0) & (now < n)), np.flatnonzero(now == n), np.repeat(boxes, 2, axis=0)
        out[2 * h, now[h], 1] = out[2 * h + 1, now[h], 0] = m[h, now[h]]
        out[2 * s] = smaller(boxes[s], *(np.concatenate(parts, axis=1) for parts in zip(*equations, strict=True)))
        boxes = out[np.stack([now >= 0, (now >= 0) & (now < n)], axis=1).ravel()]
    return len(boxes) == len(tokens) == 0


def out_of_lengths(fixed: Array, kinds: Array, limits: Array, target: Array, near: float) -> bool:
    """Return whether the target is farther than ``near`` from all points that the lengths of the links reach.

    Each joint may turn the rest of the chain in any direction. The arguments are those of ``excludes``, for one part.
    """
    o, z, n = fixed[:, :, 3].copy(), fixed[:, :, 2], len(kinds)
    away, o[0] = np.linalg.norm(target - o[0]), 0  # distances count from the first joint
    ends = np.zeros((n + 1, 3))  # values of each slide: its limits, and where the link is shortest
    ends[:n, :2] = limits * (kinds[:, None] == 1)
    ends[:, 2] = np.clip(-(o * z).sum(axis=1), ends[:, 0], ends[:, 1])
    lengths = np.linalg.norm(o[:, None] + ends[:, :, None] * z[:, None], axis=2)
    most, least = lengths.max(axis=1), lengths[:, 2]
    reach = most.sum()
    slack = 1e-13 * (np.abs(fixed[:, :, 3]).sum() + np.abs(ends).max(axis=1).sum() + np.linalg.norm(target))
    return bool(np.maximum(away - reach, (most + least).max() - reach - away) > near + slack)


class Plane:
    """Painted (possibly reachable) cells of a half-plane about joint k's axis: rows by distance, columns by angle.

    Distances are those from a point P of the axis, angles those from the axis.
    """

    def __init__(self, cells: Array, size: float, height: float) -> None:
        """Add up the painted cells before each row and column."""
        self.sums = np.pad(cells.astype(int).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        self.size, self.P = size, np.array([0.0, 0.0, height])

    def around(self, p: Array, r: Array, away: Array, error: Array) -> tuple[Array, Array]:
        """Return the number of painted cells, and of all, for points of balls (p, r) at ``away`` ± ``error`` from P."""
        d, shape = np.linalg.norm(p - self.P, axis=1), np.array(self.sums.shape) - 1
        angle = np.arctan2(np.hypot(p[:, 0], p[:, 1]), p[:, 2] - self.P[2])
        w = np.where(r < d, np.arcsin(np.minimum(r / d, 1)), np.pi)
        step = np.array([self.size, np.pi / shape[1]])
        a = np.floor(np.stack([np.maximum(away - error, 0), np.maximum(angle - w, 0)], axis=1) / step)
        b = np.floor(np.stack([away + error, np.minimum(angle + w, np.pi)], axis=1) / step) + 1
        b[:, 1] = np.minimum(b[:, 1], shape[1])
        (i, j), (k, m) = np.clip(a, 0, shape).astype(int).T, np.clip(b, 0, shape).astype(int).T
        return self.sums[k, m] - self.sums[i, m] - self.sums[k, j] + self.sums[i, j], (b - a).prod(1)


def halves(boxes: Array, k: Array) -> Array:
    """Return boxes (2B, n, 2) with the intervals of joints k (B,) halved, the lower half of each box first."""
    out, rows = np.repeat(boxes, 2, axis=0), 2 * np.arange(len(k))
    out[rows, k, 1] = out[rows + 1, k, 0] = boxes[np.arange(len(k)), k].mean(axis=-1)
    return out


def covers(fixed: Array, kinds: Array, limits: Array, plane: Plane) -> bool:
    """Return whether the painted cells cover all that the tip of a chain reaches, in a half-plane about its z axis."""
    slack, stack, count = 1e-10 * np.abs(fixed[:, :, 3]).sum(), [limits[None]], 0
    while stack:
        boxes = stack.pop()
        count += len(boxes)
        if count > MOST_BOXES:
            return False
        m, w = boxes.mean(axis=-1), (boxes[..., 1] - boxes[..., 0]) / 2
        p, r, D = ball(fixed, kinds, m, w)
        painted, whole = plane.around(p, r + slack, np.linalg.norm(p - plane.P, axis=1), r + slack)
        if not (r[~(painted == whole)] > plane.size / 32).all():
            return False
        left = np.flatnonzero(painted < whole)
        gain = (D * np.where(kinds == 1, w, np.minimum(w, 1.2)))[left]
        boxes = halves(boxes[left], gain.argmax(1))
        stack += [boxes[a : a + 20_000] for a in range(0, len(boxes), 20_000)]
    return True


def excludes_by_map(
    chain: tuple[Array, Array, Array], k: int, target: Array, near: float, tokens: Array, plane: Plane
) -> bool:
    """Return whether a map proves that the tip stays farther than ``near`` from the target.

    Args:
        chain: (fixed, kinds, limits) of the only part.
        k: The hinge of the map, which may have any value.
        target: (3,) the target, length units.
        near: The distance that is excluded, length units.
        tokens: As in ``excludes``, for boxes of the joints before k, the nearest first: -1 or the joint to halve.
        plane: The map.
    """
    fixed, kinds, limits = chain
    if kinds[k] != 0 or not covers(fixed[k + 1 :], kinds[k + 1 :], limits[k + 1 :], plane):
        return False
    back = np.swapaxes(fixed[k::-1, :, :3], 1, 2)  # the chain from the axis of k to the target
    back = np.concatenate([back, -back @ fixed[k::-1, :, 3:]], axis=2)
    back[-1, :, 3] += back[-1, :, :3] @ target
    before, kinds = -limits[:k][::-1, ::-1], kinds[:k][::-1]
    scale, P, rests, boxes = np.abs(fixed[:, :, 3]).sum(), plane.P, kinds.copy(), before[None]
    slack = 1e-10 * scale
    for i, frame in enumerate(back[:-1]):  # hinges whose axes pass through P do not change distances from it
        P = frame[:, :3].T @ (P - frame[:, 3])
        off = np.hypot(P[0], P[1])
        if kinds[i] != 0 or not off <= 1e-6 * scale:
            break
        rests[i], slack = -1, slack + 2 * off
    while len(boxes):
        now, tokens = tokens[: len(boxes)], tokens[len(boxes) :]
        m, w = boxes.mean(axis=-1), (boxes[..., 1] - boxes[..., 0]) / 2
        (p, r, _), (c, e, _) = ball(back, kinds, m, w), ball(back, rests, m, w)
        away, slacks = np.linalg.norm(c - plane.P, axis=1), near + slack
        gone = now[: len(boxes)] == -2
        if len(now) < len(boxes) or (now < -2).any() or (now == -1).any() or (now >= k).any():
            return False
        painted, whole = plane.around(p[gone], r[gone] + slacks, away[gone], e[gone] + slacks)
        if not ((painted == 0) & (whole > 0)).all():
            return False
        boxes = halves(boxes[~gone], now[~gone])
    return len(tokens) == 0


def excludes_together(chains: list[Any], shared: Array, steps: Any) -> bool:
    """Return whether steps prove that several goals cannot be met together.

    Args:
        chains: (fixed, kinds, limits, targets, near) of each goal, see ``excludes``.
        shared: (s, goals) index in each chain of the joints that all chains share.
        steps: (joint, goal, tokens) of each box of the shared joints, depth first: the joint to halve, or -1 and the
            goal that the tokens exclude in this box.
    """
    limits = chains[0][2][shared[:, 0]]
    if not all((chain[2][shared[:, g]] == limits).all() for g, chain in enumerate(chains)):
        return False
    stack = [limits[None]]
    for joint, goal, tokens in steps:
        if not stack or joint >= len(shared) or joint < -1:
            return False
        box = stack.pop()
        if joint >= 0:
            stack += [*halves(box, np.array([joint]))[::-1, None]]
            continue
        fixed, kinds, inside, targets, near = chains[goal]
        inside = inside.copy()
        inside[shared[:, goal]] = box[0]
        if not excludes(fixed, kinds, inside, targets, near, tokens):
            return False
    return not stack
