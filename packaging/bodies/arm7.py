"""The surface of the bundled arm: round white links, dark rings at the joints, and a gripper's flange.

Each link has the coordinates of its joint, whose z axis is the axis of rotation; metres.
"""

from dataclasses import replace

import numpy as np
from field import Piece, Shape, ball, drum, rod, slab

WHITE = (226, 229, 233)
DARK = (58, 64, 74)
ACCENT = (46, 134, 158)


def pieces(frames: dict[str, np.ndarray]) -> list[Piece]:
    """Return the pieces of the arm for the rest frames of its joints."""
    z = np.array((0.0, 0.0, 1.0))

    def link(name: str, joint: str, shapes: list[Shape], colour=WHITE, cell=0.0085, error=4e-4) -> Piece:
        return Piece(name, colour, [_placed(shape, frames[joint]) for shape in shapes], cell, error=error, longest=0.08)

    def ring(joint: str, low: float, high: float, radius: float, colour=DARK) -> Piece:
        edge = min(0.4 * (high - low), 0.004)
        name = f"ring {joint}"
        return link(name, joint, [drum(joint, low * z, high * z, radius, edge)], colour, 0.006, 2e-4)

    base = [
        slab("base", (-0.035, 0, 0.012), (0.125, 0.085, 0.012), 0.01),
        drum("base", (0, 0, 0.0), (0, 0, 0.145), 0.068, 0.012, blend=0.025),
        slab("base", (-0.085, 0, 0.06), (0.065, 0.05, 0.045), 0.018, blend=0.03),
    ]
    one = [
        rod("joint1", (0, 0, -0.185), (0, 0, -0.06), 0.061, 0.061),
        rod("joint1", (0, -0.055, 0), (0, 0.055, 0), 0.062, 0.062, blend=0.04),
    ]
    two = [
        rod("joint2", (0, 0, -0.035), (0, 0, 0.035), 0.0605, 0.0605),
        rod("joint2", (0, -0.03, 0), (0, -0.165, 0), 0.06, 0.059, blend=0.035),
    ]
    three = [
        rod("joint3", (0, 0, -0.12), (0, 0, -0.055), 0.0575, 0.0575),
        rod("joint3", (0, 0, -0.06), (0.07, 0, 0.0), 0.054, 0.056, blend=0.03),
        rod("joint3", (0.0825, -0.052, 0), (0.0825, 0.052, 0), 0.0555, 0.0555, blend=0.03),
    ]
    four = [
        rod("joint4", (0, 0, -0.03), (0, 0, 0.03), 0.0545, 0.0545),
        rod("joint4", (-0.01, 0.0, 0), (-0.0825, 0.075, 0), 0.052, 0.0535, blend=0.03),
        rod("joint4", (-0.0825, 0.075, 0), (-0.0825, 0.12, 0), 0.0535, 0.0535, blend=0.02),
    ]
    five = [
        rod("joint5", (0, 0, -0.24), (0, 0, -0.15), 0.0525, 0.051),
        rod("joint5", (0, 0.02, -0.15), (0, 0.052, -0.02), 0.044, 0.043, blend=0.04),
        rod("joint5", (0, 0.058, 0), (0, 0.03, 0), 0.05, 0.05, blend=0.03),
    ]
    six = [
        rod("joint6", (0, 0, -0.042), (0, 0, 0.01), 0.0485, 0.0485),
        rod("joint6", (0.0, 0, 0.0), (0.07, 0, 0.0), 0.045, 0.046, blend=0.03),
        rod("joint6", (0.088, -0.012, 0), (0.088, 0.045, 0), 0.0475, 0.0475, blend=0.025),
    ]
    seven = [
        drum("joint7", (0, 0, 0.03), (0, 0, 0.082), 0.043, 0.008),
        rod("joint7", (0.0, 0.0, 0.062), (0.038, 0.038, 0.062), 0.016, 0.016, blend=0.02),
    ]
    dark = [drum("joint7", (0, 0, 0.08), (0, 0, 0.1065), 0.0405, 0.004)]
    hand = [
        slab("hand", (0, 0, 0.034), (0.0215, 0.102, 0.0305), 0.014),
        drum("hand", (0, 0, -0.002), (0, 0, 0.02), 0.036, 0.004, blend=0.02),
    ]
    fingers = [
        shape
        for side in (1.0, -1.0)
        for shape in (
            slab("hand", (0, side * 0.032, 0.07), (0.0105, 0.0125, 0.012), 0.003),
            slab("hand", (0, side * 0.0285, 0.092), (0.0095, 0.0075, 0.02), 0.0028, blend=0.006),
        )
    ]
    return [
        link("hand", "hand", hand, cell=0.0062),
        link("fingers", "hand", fingers, DARK, 0.0035, 2e-4),
        link("base", "base", base),
        ring("joint1", -0.192, -0.183, 0.0657),
        link("link 1", "joint1", one),
        link("link 2", "joint2", two),
        ring("joint2", -0.1005, -0.094, 0.0472),
        ring("joint2", 0.094, 0.1005, 0.0472),
        ring("joint3", -0.131, -0.1225, 0.0634),
        link("link 3", "joint3", three),
        link("link 4", "joint4", four),
        ring("joint5", -0.2565, -0.248, 0.0574),
        link("link 5", "joint5", five),
        link("link 6", "joint6", six),
        ring("joint7", 0.0255, 0.0325, 0.0502),
        link("link 7", "joint7", seven, cell=0.006),
        link("flange", "joint7", dark, DARK, 0.0055),
        link("button", "joint7", [ball("joint7", (0.04, 0.04, 0.0785), (0.009, 0.009, 0.004))], ACCENT, 0.0025),
    ]


def _placed(shape: Shape, frame: np.ndarray) -> Shape:
    """Return a shape of a joint's coordinates in the world."""
    turn, at = frame[:3, :3], frame[:3, 3]
    corners = np.array([[shape.box[i, 0], shape.box[j, 1], shape.box[k, 2]] for i, j, k in np.ndindex(2, 2, 2)])
    moved = corners @ turn.T + at
    box = np.array([moved.min(axis=0), moved.max(axis=0)])
    return replace(shape, distance=lambda p: shape.distance((p - at) @ turn), box=box)
