"""Tables of landmarks made from clips, as detectors would write them, and how far a motion fitted to them is off.

y down, the hips at the origin, in metres or in pixels, a tenth of the points missing, with 3 mm of noise.
"""

import numpy as np

from synovia.clips.landmarks import OF_ROLES, PRESETS, SIDES

NOISE, MISSING = 0.003, 0.1
TRUNK = 0.5  # metres from hips to shoulders
LIMBS = [
    (f"{side}_{a}", f"{side}_{b}")
    for side in SIDES
    for a, b in (
        ("upper_leg", "lower_leg"), ("lower_leg", "foot"), ("upper_arm", "lower_arm"), ("lower_arm", "hand"),
    )
]  # fmt: skip
AXES = {"y": np.eye(3), "z": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])}


def unit(v):
    """Return vectors (T, 3) of length 1."""
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def to_y_up(motion):
    """Return the rotation that turns the clip's upward axis, y or z, to y."""
    places, body = motion.positions(), motion.skeleton
    up = places[:, body.index("head")].mean(0) - places[:, body.index("left_foot")].mean(0)
    return AXES["xyz"[int(np.argmax(np.abs(up)))]]


def landmarks(motion, preset, *, centred=True, metre=None):
    """Return landmarks (T, K, 3) of a clip in the order of a preset: y up, metres.

    Joints are themselves; face, heels and knuckles are placed beside them as on a person. ``metre`` is the number of
    the clip's length units in a metre; None for a trunk of half a metre.
    """
    places, body = motion.positions() @ to_y_up(motion).T, motion.skeleton
    at = {mark: places[:, body.index(role)] for role, mark in OF_ROLES.items() if role in body.roles}
    hips, neck = (0.5 * (at[f"left_{part}"] + at[f"right_{part}"]) for part in ("hip", "shoulder"))
    size = metre or float(np.linalg.norm(neck - hips, axis=1).mean()) / TRUNK
    up, left = unit(neck - hips), unit(at["left_shoulder"] - at["right_shoulder"])
    ahead = np.cross(left, up)
    at |= {"hips": hips, "neck": neck, "spine": 0.6 * hips + 0.4 * neck, "chest": 0.3 * hips + 0.7 * neck}
    at["head_top"] = at["head"] + 0.18 * size * up
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
        at[f"{side}_ear"] = at["head"] + size * (0.075 * sign * left + 0.05 * up)
        at[f"{side}_eye"] = at[f"{side}_ear"] + size * (0.075 * ahead - 0.04 * sign * left)
        at[f"{side}_collar"] = neck + 0.05 * size * sign * left
        if f"{side}_toe" not in at:
            at[f"{side}_toe"] = places[:, body.children[body.index(f"{side}_foot")][0]]
        at[f"{side}_heel"] = at[f"{side}_ankle"] - 0.05 * size * unit(at[f"{side}_toe"] - at[f"{side}_ankle"])
        at[f"{side}_small_toe"] = at[f"{side}_toe"] + 0.04 * size * sign * left
        knuckle = at[f"{side}_wrist"] + 0.09 * size * unit(at[f"{side}_wrist"] - at[f"{side}_elbow"])
        at |= {f"{side}_{part}": knuckle for part in ("index", "pinky", "thumb", "hand")}
    at["nose"] = 0.5 * (at["left_eye"] + at["right_eye"]) + 0.03 * size * ahead
    every = np.stack([at[name or "nose"] for name in PRESETS[preset]], axis=1)
    return (every - (hips[:, None] if centred else 0.0)) / size


def seen_by_camera(places, scale=1.0, seed=0):
    """Return landmarks as a detector gives them: y down, in its unit, with noise and gaps."""
    rng = np.random.default_rng(seed)
    out = (places + rng.normal(0.0, NOISE, places.shape)) * [1.0, -1.0, -1.0] * scale
    out[rng.random(out.shape[:2]) < MISSING] = np.nan
    return out


def monocular(places, fps, seed=0, noise=0.004):
    """Return landmarks as one camera gives them, metres: y down, depth twice as uncertain, with slow errors and gaps.

    The hips are at the origin in each frame, as in MediaPipe's world landmarks, so all others have their errors too.

    Args:
        places: Landmarks (T, 33, 3) of MediaPipe, y up; the camera looks along z.
        fps: Frames per second.
        seed: Seed of the errors.
        noise: Standard deviation of errors across the view, metres, once for each frame and once for slow errors.
    """
    from scipy.ndimage import gaussian_filter1d

    rng = np.random.default_rng(seed)
    slow = gaussian_filter1d(rng.normal(size=places.shape), 0.2 * fps, axis=0)
    out = places + noise * (rng.normal(size=places.shape) + slow / slow.std()) * [1.0, 1.0, 2.0]
    hips = [PRESETS["mediapipe"].index(f"{side}_hip") for side in SIDES]
    out -= out[:, hips].mean(1, keepdims=True)
    out[rng.random(out.shape[:2]) < MISSING] = np.nan
    return out * [1.0, -1.0, -1.0]


def path(motion):
    """Return the middle of the hips in each frame (T, 3), y up, length units."""
    rows = [motion.skeleton.index(f"{side}_upper_leg") for side in SIDES]
    return motion.positions()[:, rows].mean(1) @ to_y_up(motion).T


def leg(motion):
    """Return the length of a leg from hip to ankle, length units."""
    at = [motion.positions()[0, motion.skeleton.index(f"left_{part}")] for part in ("upper_leg", "lower_leg", "foot")]
    return float(np.linalg.norm(at[1] - at[0]) + np.linalg.norm(at[2] - at[1]))


def flights(motion, metre):
    """Return (first, end) of the frames of a clip in which its soles are more than 5 cm above the floor about them."""
    body = motion.skeleton
    rows = [row for side in SIDES for row in (body.index(f"{side}_foot"), *body.children[body.index(f"{side}_foot")])]
    low = (motion.positions()[:, rows] @ to_y_up(motion).T)[..., 1].min(1) / metre
    around = round(0.6 * motion.fps)
    floor = np.array([low[max(t - around, 0) : t + around + 1].min() for t in range(len(low))])
    air = np.concatenate([[False], low > floor + 0.05, [False]])
    edges = np.flatnonzero(np.diff(air.astype(int))).reshape(-1, 2)
    return [(int(a), int(b)) for a, b in edges if b - a >= 0.1 * motion.fps and a > 0 and b < len(low)]


def rises(places, spans):
    """Return how far a path (T, 3) rises in each flight above its ends."""
    return np.array([places[a:b, 1].max() - 0.5 * (places[a - 1, 1] + places[b, 1]) for a, b in spans])


def directions(motion):
    """Return the directions (T, 9, 3) of limbs and trunk with y up."""
    places, body = motion.positions() @ to_y_up(motion).T, motion.skeleton
    at = {role: places[:, body.index(role)] for pair in LIMBS for role in pair}
    trunk = sum(at[f"{side}_upper_arm"] - at[f"{side}_upper_leg"] for side in SIDES)
    return np.stack([unit(at[b] - at[a]) for a, b in LIMBS] + [unit(trunk)], axis=1)


def angles(source, answer):
    """Return the mean angle of each limb and the trunk between two clips, degrees, after the best turn about y."""
    a, b = directions(source), directions(answer)
    sine = np.sum(a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2])
    turn = np.arctan2(sine, np.sum(a[..., 0] * b[..., 0] + a[..., 2] * b[..., 2]))
    c, s = np.cos(turn), np.sin(turn)
    turned = a @ np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]).T
    return np.degrees(np.arccos(np.clip(np.sum(turned * b, axis=2), -1.0, 1.0))).mean(0)
