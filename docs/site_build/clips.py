"""The two clips of the first impression, in README and on the landing page.

python docs/site_build/clips.py        # writes docs/pictures/following.gif and docs/pictures/walking.gif
"""

from pathlib import Path

import numpy as np

import synovia as sy

ROOT = Path(__file__).resolve().parents[2]
ARMS = (("left", -70.0), ("right", 70.0))  # degrees from the T-pose to hanging arms

SOLES = [(x, 0.0, z) for x in (-0.13, 0.13) for z in (-0.05, 0.15)]  # metres, the corners around both feet


def following():
    """Return a clip of the bundled body (planted feet, a hand on a curve, eyes on the hand), and the curve, (T, 3)."""
    body = sy.bundled("humanoid")
    hanging = {f"{side}_upper_arm": sy.Rotation.from_euler("z", turn, degrees=True).as_quat() for side, turn in ARMS}
    posture = sy.Pose(body.with_root("free"), hanging)
    goals = [
        sy.ContactGoal("left_foot", priority=0),
        sy.ContactGoal("right_foot", priority=0),
        sy.CenterOfMassGoal(polygon=SOLES, priority=0),
        sy.PositionGoal("right_hand", priority=1),
        sy.AimGoal("head", axis=(0, 0, 1), name="gaze", priority=2),
        sy.RestGoal(posture),
    ]
    u = np.linspace(0.0, 2.0 * np.pi, 150, endpoint=False)
    curve = np.stack([-0.3 + 0.27 * np.sin(u), 1.27 + 0.23 * np.sin(2 * u + 0.5), 0.42 + 0.08 * np.cos(u)], axis=1)
    ik = sy.IK(body, goals, sy.FullBody(), root="free")
    first = ik.solve({"right_hand": curve[-1], "gaze": curve[-1]})
    return ik.track({"right_hand": curve, "gaze": curve}, start=first.pose, fps=30), curve


def walking():
    """Return the walk of the examples, and the same walk on the character of the examples."""
    walk = sy.load_motion(ROOT / "examples" / "walk.bvh")
    return walk, sy.retarget(walk, sy.load_skeleton(ROOT / "examples" / "character.glb")).motion


def main():
    """Write the films."""
    folder = ROOT / "docs" / "pictures"
    clip, _ = following()
    print(clip)
    sy.render(clip, folder / "following.gif", size=(480, 400), fps=15, force=True)
    walk, walked = walking()
    titles = ("a recorded walk", "on another body")
    sy.render(walked, folder / "walking.gif", next_to=walk, titles=titles, size=(640, 340), fps=15, force=True)


if __name__ == "__main__":
    main()
