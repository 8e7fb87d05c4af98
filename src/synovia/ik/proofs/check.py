"""The checker of proofs: NumPy only, without any code of the search; short enough to read and to copy."""
# pyright: basic

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MOST_BOXES = 40_000_000  # for a map: some ten seconds


def ball(fixed: Array, kinds: Array, m: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return centres and radii of balls that hold the tip in boxes m ± w (B, n), and bounds of its speed (B, n)."""
    p, r, D = np.tile(fixed[-1, :, 3], (len(m), 1)), np.zeros(len(m)), np.maximum(kinds, 0.0) + 0 * m
    for i in reversed(range(len(kinds))):
        if kinds[i] == 1:
            p, r = p + m[:, i, None] * [0, 0, 1], r + w[:, i]
        elif kinds[i] == 0:
            rho, a, (x, y, z) = np.hypot(p[:, 0], p[:, 1]), np.clip(w[:, i], 0, np.pi / 2), p.T
            D[:, i], r, c, s = rho + r, r + rho * np.sin(a), np.cos(m[:, i]), np.sin(m[:, i])
            p = np.stack([np.cos(a) * (c * x - s * y), np.cos(a) * (s * x + c * y), z], axis=1)
        p = p @ fixed[i, :, :3].T + fixed[i, :, 3]
    return p, r, D


def tip(fixed: Array, kinds: Array, m: Array) -> tuple[Array, Array]:
    """Return tips (B, 3) and their Jacobians (B, 3, n) at joint values m (B, n)."""
    T, x, axes, at = np.tile(np.eye(3), (len(m), 1, 1)), np.zeros((len(m), 3)), [], []
    for i, kind in enumerate(kinds):
        x, T = x + T @ fixed[i, :, 3], T @ fixed[i, :, :3]
        axes, at = [*axes, T[:, :, 2]], [*at, x]
        if kind == 1:
            x = x + T[:, :, 2] * m[:, i, None]
        elif kind == 0:
            c, s = np.cos(m[:, i, None]), np.sin(m[:, i, None])
            T = np.stack([c * T[..., 0] + s * T[..., 1], c * T[..., 1] - s * T[..., 0], T[..., 2]], axis=-1)
    x = x + T @ fixed[-1, :, 3]
    J = [z if kind == 1 else (kind == 0) * np.cross(z, x - o) for kind, z, o in zip(kinds, axes, at, strict=True)]
    return x, np.moveaxis(np.reshape(J, (len(kinds), len(m), 3)), 0, 2)


def halves(boxes: Array, k: Array) -> Array:
    """Return boxes (2B, n, 2) with the intervals of joints k (B,) halved, the lower half of each box first."""
    out, rows = np.repeat(boxes, 2, axis=0), 2 * np.arange(len(k))
    out[rows, k, 1] = out[rows + 1, k, 0] = boxes[np.arange(len(k)), k].mean(axis=-1)
    return out


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
            holds the tip of part p excludes it; -3 - 2p, it is too short in the direction of the target of part p;
            from 0 to n - 1, the joint whose interval is halved; above, joints whose intervals shrink.
    """
    n, boxes = len(limits), limits[None]
    while len(boxes):
        now, tokens = tokens[: len(boxes)], tokens[len(boxes) :]
        if len(now) < len(boxes):
            return False  # the proof is cut off
        m, w = boxes.mean(axis=-1), (boxes[..., 1] - boxes[..., 0]) / 2
        held = np.where(now == -1, (w < 0).any(1), now >= 0) & (now < n + len(fixed) * (n + 1) ** 3)
        halved, after = np.flatnonzero((now >= 0) & (now < n)), []
        after.append((np.repeat(halved, 2), halves(boxes[halved], now[halved])))
        for p in range(len(fixed)):
            shrunk = np.flatnonzero((now - n) // (n + 1) ** 3 == p)
            of_part = np.flatnonzero((now == -2 - 2 * p) | (now == -3 - 2 * p))
            rows = np.concatenate([of_part, shrunk])
            slack, (c, r, D) = 1e-9 * np.abs(fixed[p, :, :, 3]).sum(), ball(fixed[p], kinds[p], m[rows], w[rows])
            x, J = tip(fixed[p], kinds[p], m[rows])
            turning, e = w[rows] * (kinds[p] == 0), targets[p] - x
            rest = (D * w[rows] * (turning / 2 + np.cumsum(turning, axis=1) - turning)).sum(1) + near[p]
            d = np.linalg.norm(e, axis=1)
            short = d**2 > (np.abs(e[:, None] @ J)[:, 0] * w[rows]).sum(1) + (rest + slack / 10) * d
            apart = np.linalg.norm(c - targets[p], axis=1) > r + near[p] + slack / 10
            held[of_part] = np.where(now[rows] == -2 - 2 * p, apart, short)[: len(of_part)]
            j, K = slice(len(of_part), None), (now[shrunk, None] - n) // (n + 1) ** np.arange(3) % (n + 1)
            if len(shrunk):
                after.append((shrunk, smaller(boxes[shrunk], K, J[j], e[j], rest[j] + slack)))
        if not held.all():
            return False
        order = np.argsort(np.concatenate([rows for rows, _ in after]), kind="stable")
        boxes = np.concatenate([part for _, part in after])[order]
    return len(tokens) == 0


def smaller(boxes: Array, K: Array, J: Array, e: Array, rest: Array) -> Array:
    """Return boxes (B, n, 2) whose joints K (B, 3), the last n for none, shrink so that J (q - m) = e but for rest."""
    m, w, n = boxes.mean(axis=-1), (boxes[..., 1] - boxes[..., 0]) / 2, boxes.shape[1]
    a, b, c = np.moveaxis(np.take_along_axis(np.pad(J, ((0, 0), (0, 0), (0, 1))), K[:, None], axis=2), 2, 0)
    c = np.where(K[:, 2:] == n, np.cross(a, b), c)
    Y = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)  # an inverse, but for its scale
    G, wide, out = Y @ J, np.linalg.norm(Y, axis=2) * rest[:, None], boxes.copy()
    for j in range(3):  # G[j] (q - m) = Y[j] e, but for the remainder
        at = np.flatnonzero(K[:, j] < n)
        k, g = K[at, j], G[at, j, K[at, j]]
        own = np.abs(g) * w[at, k]
        h = (wide[at, j] + (np.abs(G[at, j]) * w[at]).sum(1) - own) / np.abs(g)
        mid = m[at, k] + (Y[at, j] * e[at]).sum(1) / g
        out[at, k, 0], out[at, k, 1] = np.maximum(out[at, k, 0], mid - h), np.minimum(out[at, k, 1], mid + h)
    return out


def out_of_lengths(fixed: Array, kinds: Array, limits: Array, target: Array, near: float) -> bool:
    """Return whether the target is farther than ``near`` from all points that the lengths of the links reach.

    Each joint may turn what it carries in any direction. See ``excludes`` for the arguments, of the only part.
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
    """Painted cells of a half-plane about the axis of joint k: rows by distance, columns by height."""

    def __init__(self, cells: Array, size: float, lowest: float) -> None:
        """Add up the painted cells before each row and column."""
        self.sums, self.size, self.lowest = (
            np.pad(cells.astype(int).cumsum(0).cumsum(1), ((1, 0), (1, 0))),
            size,
            lowest,
        )

    def around(self, p: Array, r: Array) -> tuple[Array, Array]:
        """Return how many cells are painted in the rectangle about each ball, and how many it has."""
        rho, shape = np.hypot(p[:, 0], p[:, 1]), np.array(self.sums.shape) - 1
        first = np.stack([np.maximum(rho - r, 0), p[:, 2] - r - self.lowest], axis=1) / self.size
        last = np.stack([rho + r, p[:, 2] + r - self.lowest], axis=1) / self.size
        a, b = np.floor(first), np.floor(last) + 1
        (i, j), (k, m) = np.clip(a, 0, shape).astype(int).T, np.clip(b, 0, shape).astype(int).T
        return self.sums[k, m] - self.sums[i, m] - self.sums[k, j] + self.sums[i, j], (b - a).prod(1)


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
        painted, whole = plane.around(p, r + slack)
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
    """Return whether a map proves that the tip comes no nearer to the target; see ``excludes`` for the chain.

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
    slack, boxes = 1e-10 * np.abs(fixed[:, :, 3]).sum(), before[None]
    while len(boxes):
        now, tokens = tokens[: len(boxes)], tokens[len(boxes) :]
        m, w = boxes.mean(axis=-1), (boxes[..., 1] - boxes[..., 0]) / 2
        p, r, _ = ball(back, kinds, m, w)
        gone = now[: len(boxes)] == -2
        if len(now) < len(boxes) or (now < -2).any() or (now == -1).any() or (now >= k).any():
            return False
        painted, whole = plane.around(p[gone], r[gone] + near + slack)
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
