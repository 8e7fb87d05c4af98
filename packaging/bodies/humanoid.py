"""The surface of the bundled humanoid: a figure in a plain suit, with bare hands and feet.

Coordinates are those of the rest pose: y up, facing +z, left is +x, arms to the sides, palms down; metres.
"""

from itertools import pairwise

import numpy as np
from field import Piece, Shape, ball, both, front, rod, slab, turned

from hands import fingers

SKIN = (222, 168, 138)
SUIT = (46, 134, 158)
TROUSERS = (52, 62, 88)
HAIR = (62, 46, 44)
EYE = (36, 32, 38)
LIPS = (158, 86, 78)
WHITE = (244, 242, 238)


def pieces(frames: dict[str, np.ndarray]) -> list[Piece]:
    """Return the pieces of the figure for the rest frames of its joints."""
    at = {name: frame[:3, 3] for name, frame in frames.items()}
    return [*_clothes(at), _hand(at), *_foot(at), *_head(at)]


def _clothes(at: dict[str, np.ndarray]) -> list[Piece]:
    shoulder, elbow, wrist = at["left_upper_arm"], at["left_lower_arm"], at["left_hand"]
    hip, knee, ankle = at["left_upper_leg"], at["left_lower_leg"], at["left_foot"]
    x, y, z = np.eye(3)
    shirt = [
        ball("hips", (0, 1.0, -0.004), (0.147, 0.12, 0.108), blend=0.04),
        ball("spine", (0, 1.135, -0.006), (0.128, 0.14, 0.094), blend=0.09),
        ball("chest", (0, 1.315, -0.016), (0.15, 0.155, 0.105), blend=0.09),
        *both(
            ball("chest", (0.066, 1.345, 0.052), (0.075, 0.062, 0.036), turned(-14, 10), blend=0.05),  # breast
            ball("chest", (0.075, 1.33, -0.075), (0.07, 0.09, 0.04), blend=0.05),  # shoulder blade
            rod("chest", (0.03, 1.475, -0.03), (0.12, 1.43, -0.026), 0.05, 0.055, blend=0.06),  # neck muscle
            rod("left_shoulder", (0.09, 1.425, -0.02), shoulder + (-0.01, -0.004, 0), 0.058, 0.062, blend=0.05),
            ball("left_upper_arm", shoulder + (0.035, -0.002, 0), (0.083, 0.062, 0.064), blend=0.05),
            rod("left_upper_arm", shoulder + (0.02, -0.004, 0), elbow, 0.054, 0.044, blend=0.03),
            ball("left_upper_arm", shoulder + (0.14, 0, 0.012), (0.09, 0.05, 0.046), blend=0.04),  # biceps
            rod("left_lower_arm", elbow, wrist - 0.012 * x, 0.043, 0.034, blend=0.03),
            ball("left_lower_arm", elbow + (0.075, -0.002, 0), (0.085, 0.047, 0.046), blend=0.04),
            rod("left_lower_arm", wrist - 0.045 * x, wrist - 0.022 * x, 0.038, 0.0385, blend=0.012),  # cuff
        ),
        rod("chest", (0, 1.44, -0.024), (0, 1.497, -0.03), 0.066, 0.063, blend=0.04),  # collar
    ]
    trims = [((0, 0.945, 0), -y, 0.014), ((0, 1.512, -0.035), (0, 1.0, 0.24), 0.008)]
    trims += [((side * (wrist[0] - 0.006), 0, 0), (side, 0, 0), 0.008) for side in (1.0, -1.0)]
    trousers = [
        ball("hips", (0, 0.985, -0.004), (0.134, 0.095, 0.1), blend=0.04),
        ball("hips", (0, 0.905, -0.002), (0.136, 0.075, 0.092), blend=0.05),
        *both(
            ball("hips", (0.064, 0.9, -0.052), (0.07, 0.082, 0.064), blend=0.04),
            rod("left_upper_leg", hip + (-0.004, -0.03, 0.002), knee + 0.004 * z, 0.078, 0.054, blend=0.03),
            ball("left_upper_leg", hip + (0.004, -0.15, 0.018), (0.07, 0.17, 0.074), blend=0.04),  # thigh
            rod("left_lower_leg", knee + 0.004 * z, ankle + (0, 0.06, -0.006), 0.053, 0.045, blend=0.02),
            ball("left_lower_leg", knee + (0.002, -0.12, -0.018), (0.051, 0.12, 0.054), blend=0.04),  # calf
            ball("left_lower_leg", knee + (0, 0.002, 0.03), (0.034, 0.042, 0.028), blend=0.03),  # kneecap
            rod("left_lower_leg", ankle + (0, 0.072, -0.006), ankle + (0, 0.052, -0.006), 0.05, 0.0515, blend=0.012),
        ),
    ]
    return [
        Piece("shirt", SUIT, shirt, 0.0155, 0.024, error=7e-4, trims=trims),
        Piece("trousers", TROUSERS, trousers, 0.0155, 0.024, error=7e-4, trims=[((0, ankle[1] + 0.035, 0), -y, 0.01)]),
    ]


def _hand(at: dict[str, np.ndarray]) -> Piece:
    """Return the left hand: a palm, four fingers that curl a little downwards, and a thumb."""
    wrist, name = at["left_hand"], "left_hand"
    shapes: list[Shape] = [
        rod(name, wrist + (-0.03, 0, 0), wrist + (0.012, 0, 0), 0.027, 0.0265),
        slab(name, wrist + (0.05, -0.003, 0.001), (0.046, 0.0155, 0.04), 0.0145, turned(0, 0, -4), blend=0.02),
        ball(name, wrist + (0.035, -0.011, 0.022), (0.034, 0.014, 0.019), turned(0, -28), blend=0.014),  # thumb's ball
    ]
    bends = "left_index_1" in at
    for finger in fingers(wrist):
        first, others = (0.014, 0.004) if finger.name == "thumb" else (0.009, 0.003)
        for part, (start, end) in enumerate(pairwise(finger.points)):
            joint = f"left_{finger.name}_{part + 1}" if bends else name
            shapes.append(rod(joint, start, end, *finger.radii[part], blend=others if part else first))
    reach = 0.0014 if bends else 0.01  # fingers are neighbours, but do not move together
    return Piece("hands", SKIN, shapes, 0.0047, reach, mirror=True, error=4.5e-4)


def _foot(at: dict[str, np.ndarray]) -> list[Piece]:
    """Return the left foot with its toes."""
    ankle, toes = at["left_foot"], at["left_toes"]
    x = ankle[0]
    shapes: list[Shape] = [
        rod("left_lower_leg", ankle + (0, 0.11, -0.006), ankle + (0, 0.02, -0.008), 0.038, 0.0345),
        *(
            ball("left_foot", ankle + (side * 0.029, 0.002, -0.004), 0.0165, blend=0.02)  # ankle bones
            for side in (1.0, -1.0)
        ),
        rod("left_foot", (x, 0.045, -0.048), (x, 0.05, -0.015), 0.036, 0.038, blend=0.03),  # heel
        rod("left_foot", (x, 0.068, 0.0), (x + 0.002, 0.031, 0.11), 0.04, 0.03, blend=0.035),  # instep
        rod("left_foot", (x + 0.022, 0.026, 0.03), (x + 0.026, 0.022, 0.11), 0.025, 0.024, blend=0.03),
        ball("left_foot", (x - 0.018, 0.025, 0.122), (0.028, 0.025, 0.03), blend=0.03),
        rod("left_toes", (x - 0.018, 0.022, 0.132), (x + 0.03, 0.018, 0.124), 0.022, 0.019, blend=0.03),
    ]
    nails: list[Shape] = []
    #     x, length, radius
    for dx, length, radius in ((-0.027, 0.068, 0.0142), (-0.0025, 0.066, 0.0104), (0.0155, 0.058, 0.0097),
                               (0.032, 0.047, 0.0092), (0.047, 0.034, 0.0088)):  # fmt: skip
        start = np.array((x + dx * 0.9, 0.019, toes[2] - 0.004))
        middle = np.array((x + dx, radius + 0.0075, toes[2] + 0.55 * length))
        end = np.array((x + dx * 1.04, radius, toes[2] + length))
        nails.append(rod("left_toes", start, middle, radius * 0.95, radius * 0.95, blend=0.003))
        nails.append(rod("left_toes", middle, end, radius * 0.95, radius, blend=0.003))
    floor = [((0, 0.0, 0), (0, -1, 0), 0.008)]
    return [
        Piece("feet", SKIN, shapes, 0.009, 0.014, mirror=True, trims=floor, error=4.5e-4),
        Piece("toes", SKIN, nails, 0.0052, 0.014, mirror=True, trims=floor, error=4.5e-4),
    ]


def _head(at: dict[str, np.ndarray]) -> list[Piece]:
    """Return head with neck, hair, eyes and brows."""
    neck, head = at["neck"], at["head"]
    c = np.array((0.0, head[1] + 0.083, head[2] + 0.012))  # the middle of the skull
    skull = [
        rod("chest", neck + (0, -0.05, 0.0), neck + (0, -0.01, 0), 0.055, 0.053),
        rod("neck", neck + (0, -0.02, 0.002), head + (0, 0.0, -0.012), 0.054, 0.051, blend=0.03),
        ball("head", c + (0, 0.012, -0.012), (0.079, 0.092, 0.099), blend=0.02),
        ball("head", c + (0, -0.043, 0.026), (0.064, 0.066, 0.064), blend=0.05),  # face
        ball("head", c + (0, -0.094, 0.058), (0.03, 0.021, 0.024), blend=0.04),  # chin
        *both(
            ball("head", c + (0.032, -0.008, 0.112), (0.026, 0.017, 0.022), blend=0.03, cut=True),  # socket
            ball("head", c + (0.04, -0.042, 0.064), (0.024, 0.02, 0.022), blend=0.035),  # cheek
        ),
    ]
    nose = front(skull, 0.0, c[1] - 0.034)
    mouth = front(skull, 0.0, c[1] - 0.069)
    flesh = [
        *skull,
        *both(
            ball("head", c + (0.08, -0.016, -0.006), (0.011, 0.03, 0.019), turned(-10, -18), blend=0.01),  # ear
            ball("head", c + (0.088, -0.012, 0.0), (0.006, 0.018, 0.011), turned(-10, -18), blend=0.006, cut=True),
            ball("head", nose + (0.0085, -0.004, 0.003), (0.008, 0.0065, 0.008), blend=0.008),  # nostril
        ),
        rod("head", nose + (0, 0.034, -0.004), nose + (0, 0.0, 0.006), 0.0065, 0.0105, blend=0.02),  # nose
        ball("head", mouth + (0, -0.001, -0.006), (0.022, 0.011, 0.0085), blend=0.012),  # lips
    ]
    hair = [
        ball("head", c + (0, 0.018, -0.014), (0.087, 0.099, 0.106)),
        ball("head", c + (0, -0.03, -0.05), (0.079, 0.08, 0.062), blend=0.03),
        ball("head", c + (0.006, 0.09, 0.048), (0.062, 0.027, 0.047), turned(20, 0, -4), blend=0.04),  # quiff
        ball("head", c + (0, -0.052, 0.1), (0.071, 0.115, 0.075), blend=0.016, cut=True),  # the face is free
        *both(ball("head", c + (0.085, -0.036, 0.016), (0.05, 0.05, 0.03), blend=0.014, cut=True)),
        ball("head", c + (0, -0.13, -0.06), (0.12, 0.06, 0.12), blend=0.02, cut=True),  # nape
    ]
    eye = front(skull, 0.0325, c[1] - 0.008)
    eyes = [*both(ball("head", eye + (0, 0, -0.0028), (0.0088, 0.0118, 0.0062), turned(0, 16)))]
    glints = [ball("head", eye + (dx, 0.0042, 0.0018), 0.0024) for dx in (0.0028, -2.0 * eye[0] + 0.0028)]
    brow = [front(skull, x, c[1] + y) for x, y in ((0.017, 0.0205), (0.027, 0.0245), (0.04, 0.0245), (0.0525, 0.0185))]
    brows = [
        *both(*(rod("head", p, q, 0.0027 - 0.0004 * k, 0.0023 - 0.0004 * k) for k, (p, q) in enumerate(pairwise(brow))))
    ]
    line = [front(flesh, x, mouth[1] + y) for x, y in ((-0.021, 0.0035), (-0.011, -0.0006), (0.0, -0.002),
                                                       (0.011, -0.0006), (0.021, 0.0035))]  # fmt: skip
    smile = [rod("head", p - (0, 0, 0.0004), q - (0, 0, 0.0004), 0.0019) for p, q in pairwise(line)]
    return [
        Piece("head", SKIN, flesh, 0.0075, 0.016, error=4e-4),
        Piece("hair", HAIR, hair, 0.0095, 0.016),
        Piece("eyes", EYE, eyes, 0.003, 0.01, error=1.5e-4),
        Piece("glints", WHITE, glints, 0.0014, 0.01, error=1e-4),
        Piece("brows", HAIR, brows, 0.0021, 0.01, error=2e-4),
        Piece("smile", LIPS, smile, 0.0019, 0.01, error=2e-4),
    ]
