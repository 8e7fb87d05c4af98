"""Make a walking clip out of nothing but goals: where hips, feet and hands should be, frame by frame.

    python examples/make_walk.py walk.bvh

The bundled humanoid walks three strides. Feet stand still while they carry, hips bob twice a stride, hands swing
against the legs; everything in between follows.
"""

import sys

import numpy as np

import synovia as sy

FPS, STRIDES, SECONDS = 30.0, 3, 1.12  # one stride is two steps
STRIDE = 1.05  # metres
STANCE = 0.6  # of a stride, each foot
HEEL = 0.75  # radians at the end of a stance


def smooth(u):
    """Ease from 0 to 1 without a jump in speed or acceleration."""
    u = np.clip(u, 0.0, 1.0)
    return u**3 * (u * (6.0 * u - 15.0) + 10.0)


def foot(phase, ankle, toes):
    """Return where an ankle is after so many strides, (T, 3), and how far its heel is up (radians).

    The foot stands flat, rolls over its toes, swings, and lands where the next stride begins.
    """
    whole, part = np.floor(phase), phase - np.floor(phase)
    swing = np.clip((part - STANCE) / (1.0 - STANCE), 0.0, 1.0)
    pitch = np.where(part < STANCE, HEEL * smooth((part - 0.22) / (STANCE - 0.22)), HEEL * (1.0 - smooth(swing / 0.7)))
    arm = ankle - toes
    y = toes[1] + arm[1] * np.cos(pitch) - arm[2] * np.sin(pitch)
    z = toes[2] + arm[1] * np.sin(pitch) + arm[2] * np.cos(pitch)
    lift = 0.07 * np.sin(np.pi * swing) ** 2
    return np.stack([np.full_like(phase, ankle[0]), y + lift, z + STRIDE * (whole + smooth(swing))], 1), pitch


def main(path):
    """Solve the walk and write it."""
    body = sy.bundled("humanoid")
    rest = body.rest_pose()
    t = np.arange(round(FPS * STRIDES * SECONDS)) / FPS
    phase = t / SECONDS
    poses = {}
    for side, shift in (("left", 0.0), ("right", 0.5)):
        place, pitch = foot(phase + shift, rest.position(f"{side}_foot"), rest.position(f"{side}_toes"))
        place[:, 2] += STRIDE * (STANCE / 2.0 - shift) - 0.06
        poses[f"{side}_foot"] = (place, sy.Rotation.from_euler("x", pitch[:, None]))
    hips = np.tile(rest.position("hips"), (len(t), 1))
    hips += np.stack(
        [0.02 * np.sin(2 * np.pi * phase), 0.018 * np.cos(4 * np.pi * (phase + 0.08)) - 0.055, STRIDE * phase], 1
    )
    poses["hips"] = (hips, sy.Rotation.from_euler("y", -0.10 * np.cos(2 * np.pi * phase)[:, None]))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        swing = sign * np.cos(2 * np.pi * phase)
        poses[f"{side}_hand"] = hips + np.stack([sign * (0.24 + 0 * t), 0.06 * swing**2 - 0.06, 0.06 - 0.22 * swing], 1)
    poses["head"] = sy.Rotation.identity(len(t))
    goals = [
        sy.PoseGoal("left_foot"),
        sy.PoseGoal("right_foot"),
        sy.PoseGoal("hips"),
        sy.PositionGoal("left_hand", weight=0.2),
        sy.PositionGoal("right_hand", weight=0.2),
        sy.RotationGoal("head", weight=0.2),
    ]
    clip = sy.IK(body, goals, root="free", tolerance=(2e-3, 2e-2)).track(poses, fps=FPS)
    print(clip)
    sy.save_motion(sy.Motion(clip.motion.skeleton, clip.q, FPS, name="walk"), path, force=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "walk.bvh")
