"""Made people with spines and necks of any number of joints, and clips in which some of their joints turn."""

import numpy as np
from scipy.spatial.transform import Rotation

import synovia as sy

ARM = (("shoulder", (0.03, 0.0)), ("upper_arm", (0.14, 0.0)), ("lower_arm", (0.27, 0.0)), ("hand", (0.25, 0.0)))
LEG = (("upper_leg", (0.1, -0.05)), ("lower_leg", (0.0, -0.42)), ("foot", (0.0, -0.42)))


def person(spine=(0.15, 0.15), neck=1, *, pelvis=False, extra=(), turned=None, scale=1.0, name="person"):
    """Return a person with a spine of bones of some lengths (one more joint), in a T-pose, y up, facing z.

    Args:
        spine: Lengths of the bones between the joints of its spine.
        neck: Number of joints of its neck below the head.
        pelvis: Whether the legs begin at a pelvis beside the spine.
        extra: More joints (name, parent, offset), for both sides if they are of a limb.
        turned: A generator of random axes of the bones; None for those of the world.
        scale: Size.
        name: Its name.
    """
    rows = [("base", None, (0.0, 0.95, 0.0))]
    rows += [("hips", "base", (0.0, 0.0, 0.0))] if pelvis else []
    above = "base"
    for k, length in enumerate((0.1, *spine)):
        rows.append((f"spine{k}", above, (0.0, length, 0.0)))
        above = f"spine{k}"
    top = above
    for k in range(neck + 1):
        joint = "head" if k == neck else f"neck{k}"
        rows.append((joint, above, (0.0, 0.12 if k == 0 else 0.1 / neck, 0.0)))
        above = joint
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for limb, start in ((ARM, top), (LEG, "hips" if pelvis else "base")):
            above = start
            for part, (x, y) in limb:
                rows.append((f"{side}_{part}", above, (sign * x, y, 0.0)))
                above = f"{side}_{part}"
        rows.append((f"{side}_toes", f"{side}_foot", (0.0, -0.04, 0.12)))
        rows += [(f"{side}_{joint}", f"{side}_{parent}", (sign * x, *more)) for joint, parent, (x, *more) in extra]
    joints, axes = [], {None: np.eye(3)}
    for joint, parent, offset in rows:
        axes[joint] = np.eye(3) if turned is None else Rotation.random(random_state=turned).as_matrix()
        rest = np.eye(4)
        rest[:3, :3] = axes[parent].T @ axes[joint]
        rest[:3, 3] = scale * axes[parent].T @ offset
        kind = sy.Kind.FREE if parent is None else sy.Kind.BALL
        joints.append(sy.Joint(joint, parent, kind, rest))
    return sy.Skeleton(joints, name=name, up="y", forward="z")


def moved(body, turns, frames=21):
    """Return a clip in which joints turn by rotation vectors, in the axes of the world, to the full and back."""
    q = np.tile(body.rest_q, (frames, 1))
    rest = body.rest_pose()
    for name, vector in turns.items():
        at, own = body.q_slice(name), rest.rotation(name).as_matrix()
        for t, share in enumerate(np.sin(np.linspace(0.0, np.pi, frames))):
            q[t, at.stop - 4 : at.stop] = Rotation.from_rotvec(share * own.T @ vector).as_quat()
    return sy.Motion(body, q, 30.0)


def turn(motion, name, frame=10):
    """Return how far a joint has turned since rest in the axes of the world."""
    pose, rest = motion.pose(frame), motion.skeleton.rest_pose()
    return Rotation.from_matrix(pose.rotation(name).as_matrix() @ rest.rotation(name).as_matrix().T)
