"""The surface of the bundled quadruped: a lean dog with hanging ears and a collar.

Coordinates are those of the rest pose: y up, facing +z, left is +x, standing; metres.
"""

import numpy as np
from field import Piece, Shape, ball, both, rod, turned

COAT = (196, 138, 84)
DARK = (92, 60, 44)
PALE = (236, 216, 190)
NOSE = (38, 32, 34)
EYE = (30, 26, 28)
WHITE = (246, 244, 240)
COLLAR = (46, 134, 158)


def pieces(frames: dict[str, np.ndarray]) -> list[Piece]:
    """Return the pieces of the dog for the rest frames of its joints."""
    at = {name: frame[:3, 3] for name, frame in frames.items()}
    hips, spine, chest, neck, head, nose = (at[n] for n in ("hips", "spine", "chest", "neck", "head", "nose"))
    y = np.array((0.0, 1.0, 0.0))
    trunk: list[Shape] = [
        ball("hips", hips + (0, -0.02, -0.005), (0.085, 0.088, 0.115)),
        ball("spine", spine + (0, -0.035, 0.06), (0.08, 0.085, 0.15), blend=0.06),
        ball("chest", chest + (0, -0.075, 0.07), (0.092, 0.125, 0.155), blend=0.07),
        ball("chest", chest + (0, -0.05, 0.165), (0.07, 0.095, 0.075), blend=0.05),  # breast
        rod("chest", chest + (0, -0.01, 0.1), neck + (0, 0.0, 0.0), 0.075, 0.072, blend=0.06),
        rod("neck", neck, head - (0, 0.02, 0.02), 0.068, 0.056, blend=0.05),
        ball("head", head + (0, 0.012, 0.012), (0.061, 0.06, 0.075), blend=0.03),  # skull
        rod("head", head + (0, -0.012, 0.05), nose + (0, 0.0, -0.028), 0.042, 0.029, blend=0.035),  # muzzle
        rod("head", head + (0, -0.034, 0.03), nose + (0, -0.022, -0.042), 0.03, 0.021, blend=0.02),  # jaw
        *both(
            ball("head", head + (0.03, 0.034, 0.052), (0.022, 0.016, 0.02), blend=0.02),  # brow
            ball("head", head + (0.036, 0.008, 0.078), (0.016, 0.014, 0.016), blend=0.02, cut=True),  # socket
            rod(
                "head",
                nose + (0.006, -0.017, -0.006),
                head + (0.036, -0.036, 0.062),
                0.0016,
                0.0016,
                blend=0.006,
                cut=True,
            ),  # mouth
            *_fore(at),
            *_hind(at),
        ),
        rod("hips", at["hips"] + (0, 0.005, -0.07), at["tail"], 0.045, 0.03, blend=0.03),
        rod("tail", at["tail"], at["tail_middle"], 0.03, 0.023, blend=0.02),
        rod("tail_middle", at["tail_middle"], at["tail_end"], 0.024, 0.019, blend=0.012),
        rod(
            "tail_end",
            at["tail_end"],
            at["tail_tip"] - 0.35 * (at["tail_tip"] - at["tail_end"]),
            0.019,
            0.012,
            blend=0.01,
        ),
    ]
    tip = at["tail_tip"]
    tail = [rod("tail_end", tip - 0.45 * (tip - at["tail_end"]), tip, 0.0158, 0.009)]
    ears = [
        ball("head", head + (0.056, 0.034, -0.006), (0.018, 0.026, 0.026), turned(0, 0, -30)),
        ball("head", head + (0.073, -0.002, 0.0), (0.0115, 0.047, 0.031), turned(8, 0, 12), blend=0.025),
    ]
    tip_of_nose = [ball("head", nose + (0, 0.012, -0.008), (0.0175, 0.0135, 0.0145))]
    where = head + (0.0375, 0.012, 0.0625)
    eyes = [*both(ball("head", where, (0.0105, 0.0125, 0.0105)))]
    glints = [ball("head", (s * where[0] + 0.003, where[1] + 0.0055, where[2] + 0.0085), 0.0028) for s in (1, -1)]
    along = (head - neck) / np.linalg.norm(head - neck)
    middle = neck + 0.42 * (head - neck)
    collar = [rod("neck", middle - 0.006 * along, middle + 0.006 * along, 0.0735, 0.0725)]
    trims = [(middle - 0.0125 * along, -along, 0.004), (middle + 0.0125 * along, along, 0.004)]
    front = np.cross(along, (1.0, 0.0, 0.0))
    tag = [ball("neck", middle - 0.074 * front * np.sign(front @ y) + (0, -0.008, 0.0), (0.012, 0.015, 0.006))]
    return [
        Piece("coat", COAT, trunk, 0.0095, 0.016, error=4.5e-4, trims=[((0, 0.0, 0), -y, 0.006)]),
        Piece("paws", PALE, _paws(at), 0.0066, 0.012, mirror=False, error=4e-4, trims=[((0, 0.0, 0), -y, 0.006)]),
        Piece("ears", DARK, [*both(*ears)], 0.007, 0.01, error=4e-4),
        Piece("tail", PALE, tail, 0.006, 0.01),
        Piece("nose", NOSE, tip_of_nose, 0.004, 0.01, error=2e-4),
        Piece("eyes", EYE, eyes, 0.0032, 0.01, error=1.5e-4),
        Piece("glints", WHITE, glints, 0.0015, 0.01, error=1e-4),
        Piece("collar", COLLAR, collar, 0.006, 0.01, trims=trims),
        Piece("tag", WHITE, tag, 0.003, 0.01, error=2e-4),
    ]


def _fore(at: dict[str, np.ndarray]) -> list[Shape]:
    """Return the left fore leg down to the paw."""
    scapula, upper, lower, pastern, paw = (
        at[f"left_{n}"] for n in ("scapula", "fore_upper_leg", "fore_lower_leg", "fore_pastern", "fore_paw")
    )
    return [
        rod("left_scapula", scapula, upper, 0.045, 0.042, blend=0.03),
        rod("left_fore_upper_leg", upper, lower, 0.044, 0.034, blend=0.025),
        rod("left_fore_lower_leg", lower + (0, 0.004, -0.006), pastern, 0.034, 0.0235, blend=0.015),
        rod("left_fore_pastern", pastern, paw, 0.0245, 0.024, blend=0.01),
    ]


def _hind(at: dict[str, np.ndarray]) -> list[Shape]:
    """Return the left hind leg down to the paw."""
    upper, lower, pastern, paw = (at[f"left_hind_{n}"] for n in ("upper_leg", "lower_leg", "pastern", "paw"))
    return [
        rod("left_hind_upper_leg", upper + (-0.005, 0.0, 0.0), lower, 0.068, 0.043, blend=0.03),
        ball("left_hind_upper_leg", (upper + lower) / 2.0 + (0, 0.012, -0.025), (0.046, 0.085, 0.068), blend=0.03),
        rod("left_hind_lower_leg", lower, pastern, 0.042, 0.0235, blend=0.02),
        ball("left_hind_pastern", pastern + (0, 0.004, -0.006), (0.02, 0.024, 0.022), blend=0.012),  # heel
        rod("left_hind_pastern", pastern, paw, 0.0225, 0.024, blend=0.012),
    ]


def _paws(at: dict[str, np.ndarray]) -> list[Shape]:
    """Return the four paws with their toes."""
    out: list[Shape] = []
    for leg in ("fore", "hind"):
        joint = f"left_{leg}_paw"
        paw, toes = at[joint], at[f"left_{leg}_toes"]
        middle = np.array((paw[0], 0.024, paw[2] + 0.012))
        shapes = [
            rod(f"left_{leg}_pastern", paw + (0, 0.012, -0.001), paw, 0.0262, 0.0262),
            rod(joint, paw, middle, 0.026, 0.027, blend=0.02),
        ]
        for dx, dz in ((-0.021, -0.012), (-0.0075, 0.0), (0.0075, 0.0), (0.021, -0.012)):
            end = np.array((toes[0] + dx, 0.0145, toes[2] - 0.012 + dz))
            shapes.append(rod(joint, middle + (0.6 * dx, -0.004, 0.004), end, 0.0125, 0.0132, blend=0.006))
        out += both(*shapes)
    return out
