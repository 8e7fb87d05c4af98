"""The checker of proofs: NumPy only, without any code of the search; short enough to read and to copy."""
# pyright: basic

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MOST_BOXES = 40_000_000  # for a map: some ten seconds


def ball(fixed: Array, slides: Array, m: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return centres and radii of balls that hold the tip in boxes m ± w (B, n), and bounds of its speed (B, n)."""
    p, r, D = np.tile(fixed[-1, :, 3], (len(m), 1)), np.zeros(len(m)), np.ones_like(m)
    for i in reversed(range(len(slides))):
        if slides[i]:
            p, r = p + m[:, i, None] * [0, 0, 1], r + w[:, i]
        else:
            rho, a, (x, y, z) = np.hypot(p[:, 0], p[:, 1]), np.clip(w[:, i], 0, np.pi / 2), p.T
            D[:, i], r, c, s = rho + r, r + rho * np.sin(a), np.cos(m[:, i]), np.sin(m[:, i])
            p = np.stack([np.cos(a) * (c * x - s * y), np.cos(a) * (s * x + c * y), z], axis=1)
        p = p @ fixed[i, :, :3].T + fixed[i, :, 3]
    return p, r, D


def halves(boxes: Array, k: Array) -> Array:
    """Return boxes (2B, n, 2) with the intervals of joints k (B,) halved, the lower half of each box first."""
    out, rows = np.repeat(boxes, 2, axis=0), 2 * np.arange(len(k))
    out[rows, k, 1] = out[rows + 1, k, 0] = boxes[np.arange(len(k)), k].mean(axis=-1)
    return out


@np.errstate(all="ignore")  # a wrong proof may divide by zero; no comparison with nan is true
def excludes(fixed: Array, slides: Array, limits: Array, target: Array, near: float, tokens: Array) -> bool:
    """Return whether tokens prove that no joint values within the limits bring the tip nearer to the target.

    Joints turn about, or slide along, their own z axes.

    Args:
        fixed: (n + 1, 3, 4) transforms: before each joint, and from the last joint to the tip.
        slides: (n,) whether each joint slides.
        limits: (n, 2) lower and upper limits, radians or length units.
        target: (3,) the target, length units.
        near: The distance that is excluded, length units.
        tokens: (t,) what happens to each box of joint values, level by level: -1, it is excluded by a ball that
            holds the tip; -2, it is too short in the direction of the target; -3, it is empty; from 0 to n - 1, the
            joint whose interval is halved; above, three joints whose intervals shrink.
    """
    n, R, o = len(slides), fixed[:, :, :3], fixed[:, :, 3]
    slack, boxes = 1e-9 * np.abs(o).sum(), limits[None]
    while len(boxes):
        now, tokens = tokens[: len(boxes)], tokens[len(boxes) :]
        if len(now) < len(boxes):
            return False  # the proof is cut off
        m, w = boxes.mean(axis=-1), (boxes[..., 1] - boxes[..., 0]) / 2
        p, r, D = ball(fixed, slides, m, w)
        apart = np.linalg.norm(p - target, axis=1) > r + near + slack / 10
        # tip x, Jacobian J and bound of the second order at the centres
        T, x, axes, at = np.tile(np.eye(3), (len(boxes), 1, 1)), np.zeros((len(boxes), 3)), [], []
        for i in range(n):
            x, T = x + T @ o[i], T @ R[i]
            axes, at = [*axes, T[:, :, 2]], [*at, x]
            if slides[i]:
                x = x + T[:, :, 2] * m[:, i, None]
            else:
                c, s = np.cos(m[:, i, None]), np.sin(m[:, i, None])
                T = np.stack([c * T[..., 0] + s * T[..., 1], c * T[..., 1] - s * T[..., 0], T[..., 2]], axis=-1)
        x = x + T @ o[n]
        J = np.stack([z if slides[i] else np.cross(z, x - at[i]) for i, z in enumerate(axes)], axis=-1)
        turning = w * ~slides
        rest = (D * w * (turning / 2 + np.cumsum(turning, axis=1) - turning)).sum(1) + near
        e = target - x
        d = np.linalg.norm(e, axis=1)
        short = d**2 > (np.abs(e[:, None] @ J)[:, 0] * w).sum(1) + (rest + slack / 10) * d
        held = np.select([now == -1, now == -2, now == -3], [apart, short, (w < 0).any(1)], now >= 0)
        if not held.all() or (now >= n + n**3).any():
            return False
        halved, shrunk = np.flatnonzero((now >= 0) & (now < n)), np.flatnonzero(now >= n)
        small, K = boxes[shrunk], (now[shrunk, None] - n) // n ** np.arange(3) % n
        rows, J, w = np.arange(len(K)), J[shrunk], w[shrunk]
        a, b, c = np.moveaxis(np.take_along_axis(J, K[:, None], axis=2), 2, 0)
        Y = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)  # an inverse, but for its scale
        G, wide = Y @ J, np.linalg.norm(Y, axis=2) * (rest[shrunk, None] + slack)
        for j in range(3):  # G[j] (q - m) = Y[j] e, but for the remainder
            k = K[:, j]
            g, own = G[rows, j, k], np.abs(G[rows, j, k]) * w[rows, k]
            h = (wide[:, j] + (np.abs(G[:, j]) * w).sum(1) - own) / np.abs(g)
            mid = m[shrunk][rows, k] + (Y[:, j] * e[shrunk]).sum(1) / g
            small[rows, k, 0] = np.maximum(small[rows, k, 0], mid - h)
            small[rows, k, 1] = np.minimum(small[rows, k, 1], mid + h)
        order = np.argsort(np.concatenate([np.repeat(halved, 2), shrunk]), kind="stable")
        boxes = np.concatenate([halves(boxes[halved], now[halved]), small])[order]
    return len(tokens) == 0


def out_of_lengths(fixed: Array, slides: Array, limits: Array, target: Array, near: float) -> bool:
    """Return whether the target is farther than ``near`` from all points that the lengths of the links reach.

    Each joint may turn what it carries in any direction. See ``excludes`` for the arguments.
    """
    o, z, n = fixed[:, :, 3].copy(), fixed[:, :, 2], len(slides)
    away, o[0] = np.linalg.norm(target - o[0]), 0  # distances count from the first joint
    ends = np.zeros((n + 1, 3))  # values of each slide: its limits, and where the link is shortest
    ends[:n, :2] = limits * slides[:, None]
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


def covers(fixed: Array, slides: Array, limits: Array, plane: Plane) -> bool:
    """Return whether the painted cells cover all that the tip of a chain reaches, in a half-plane about its z axis."""
    slack, stack, count = 1e-10 * np.abs(fixed[:, :, 3]).sum(), [limits[None]], 0
    while stack:
        boxes = stack.pop()
        count += len(boxes)
        if count > MOST_BOXES:
            return False
        m, w = boxes.mean(axis=-1), (boxes[..., 1] - boxes[..., 0]) / 2
        p, r, D = ball(fixed, slides, m, w)
        painted, whole = plane.around(p, r + slack)
        if not (r[~(painted == whole)] > plane.size / 32).all():
            return False
        left = np.flatnonzero(painted < whole)
        gain = (D * np.where(slides, w, np.minimum(w, 1.2)))[left]
        boxes = halves(boxes[left], gain.argmax(1))
        stack += [boxes[a : a + 20_000] for a in range(0, len(boxes), 20_000)]
    return True


def excludes_by_map(
    chain: tuple[Array, Array, Array], k: int, target: Array, near: float, tokens: Array, plane: Plane
) -> bool:
    """Return whether a map proves that the tip comes no nearer to the target; see ``excludes`` for the chain.

    Args:
        chain: (fixed, slides, limits).
        k: The hinge of the map, which may have any value.
        target: (3,) the target, length units.
        near: The distance that is excluded, length units.
        tokens: As in ``excludes``, for boxes of the joints before k, the nearest first: -1 or the joint to halve.
        plane: The map.
    """
    fixed, slides, limits = chain
    if slides[k] or not covers(fixed[k + 1 :], slides[k + 1 :], limits[k + 1 :], plane):
        return False
    back = np.swapaxes(fixed[k::-1, :, :3], 1, 2)  # the chain from the axis of k to the target
    back = np.concatenate([back, -back @ fixed[k::-1, :, 3:]], axis=2)
    back[-1, :, 3] += back[-1, :, :3] @ target
    before, slides = -limits[:k][::-1, ::-1], slides[:k][::-1]
    slack, boxes = 1e-10 * np.abs(fixed[:, :, 3]).sum(), before[None]
    while len(boxes):
        now, tokens = tokens[: len(boxes)], tokens[len(boxes) :]
        m, w = boxes.mean(axis=-1), (boxes[..., 1] - boxes[..., 0]) / 2
        p, r, _ = ball(back, slides, m, w)
        gone = now[: len(boxes)] == -1
        if len(now) < len(boxes) or (now < -1).any() or (now >= k).any():
            return False
        painted, whole = plane.around(p[gone], r[gone] + near + slack)
        if not ((painted == 0) & (whole > 0)).all():
            return False
        boxes = halves(boxes[~gone], now[~gone])
    return len(tokens) == 0


def excludes_together(chains: list[tuple[Array, Array, Array, Array, float]], shared: Array, steps: Any) -> bool:
    """Return whether steps prove that the tips of several chains cannot be near their targets together.

    Args:
        chains: (fixed, slides, limits, target, near) of each goal, see ``excludes``.
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
        fixed, slides, inside, target, near = chains[goal]
        inside = inside.copy()
        inside[shared[:, goal]] = box[0]
        if not excludes(fixed, slides, inside, target, near, tokens):
            return False
    return not stack
