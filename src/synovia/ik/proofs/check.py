"""The checker of proofs: NumPy only, without any code of the search; short enough to read and to copy."""
# pyright: basic

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


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
    slack, boxes, turns = 1e-9 * np.abs(o).sum(), limits[None], ~slides
    while len(boxes):
        now, tokens = tokens[: len(boxes)], tokens[len(boxes) :]
        if len(now) < len(boxes):
            return False  # the proof is cut off
        m, w = boxes.mean(axis=-1), (boxes[..., 1] - boxes[..., 0]) / 2
        # a ball with centre p and radius r holds the tip; D bounds its speed for each joint
        p, r, D, (c, s) = np.tile(o[n], (len(boxes), 1)), np.zeros(len(boxes)), np.ones_like(m), (np.cos(m), np.sin(m))
        for i in reversed(range(n)):
            if slides[i]:
                p, r = p + m[:, i, None] * [0, 0, 1], r + w[:, i]
            else:
                rho, a, (x, y, z) = np.hypot(p[:, 0], p[:, 1]), np.clip(w[:, i], 0, np.pi / 2), p.T
                D[:, i], r, cut = rho + r, r + rho * np.sin(a), np.cos(a)
                p = np.stack([cut * (c[:, i] * x - s[:, i] * y), cut * (s[:, i] * x + c[:, i] * y), z], axis=1)
            p = p @ R[i].T + o[i]
        ball = np.linalg.norm(p - target, axis=1) > r + near + slack / 10
        # tip x, Jacobian J and bound of the second order at the centres
        T, x, axes, at = np.tile(np.eye(3), (len(boxes), 1, 1)), np.zeros((len(boxes), 3)), [], []
        for i in range(n):
            x, T = x + T @ o[i], T @ R[i]
            axes, at = [*axes, T[:, :, 2]], [*at, x]
            if slides[i]:
                x = x + T[:, :, 2] * m[:, i, None]
            else:
                C, S = c[:, i, None], s[:, i, None]
                T = np.stack([C * T[..., 0] + S * T[..., 1], C * T[..., 1] - S * T[..., 0], T[..., 2]], axis=-1)
        x = x + T @ o[n]
        J = np.stack([z if slides[i] else np.cross(z, x - at[i]) for i, z in enumerate(axes)], axis=-1)
        turning = w * turns
        rest = (D * w * (turning / 2 + np.cumsum(turning, axis=1) - turning)).sum(1) + near
        e = target - x
        d = np.linalg.norm(e, axis=1)
        short = d**2 > (np.abs(e[:, None] @ J)[:, 0] * w).sum(1) + (rest + slack / 10) * d
        held = np.select([now == -1, now == -2, now == -3], [ball, short, (w < 0).any(1)], now >= 0)
        if not held.all() or (now >= n + n**3).any():
            return False
        halved, shrunk = np.flatnonzero((now >= 0) & (now < n)), np.flatnonzero(now >= n)
        pair, k = np.repeat(boxes[halved], 2, axis=0), now[halved]
        rows = 2 * np.arange(len(k))
        pair[rows, k, 1] = pair[rows + 1, k, 0] = m[halved, k]
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
        boxes = np.concatenate([pair, small])[order]
    return len(tokens) == 0
