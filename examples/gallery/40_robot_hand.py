"""A robot hand follows 21 points
==============================

The 21 points that hand trackers give move a robot hand with four fingers: first a fist, then a pinch of thumb and index
finger. No file about the hand is needed, only the hand. Its fingers are capsules, which `clearance=0` keeps out of each
other and of the palm, so that in the pinch the pads touch. The points are shown beside the hand.
"""

import numpy as np

import synovia as sy

person = sy.bundled("humanoid_hands")
fist = {f"right_{name}_{k}": 1.2 for name in ("index", "middle", "ring", "little") for k in (1, 2, 3)}
bent = sy.Pose(person, fist | {"right_thumb_2": 0.5, "right_thumb_3": 0.8})
ends = ("right_thumb_tip", "right_index_tip")
meet = [sy.RelativeGoal(*ends, (0, 0, 0)), sy.RestGoal(weight=0.1)]
pinch = sy.solve(person, meet, start=sy.Pose(person, {"right_index_1": 0.6, "right_index_2": 0.8})).pose
still = person.rest_pose()
keys = sy.Motion(person, [pose.q for pose in (still, bent, bent, still, pinch, pinch, still)], fps=1.5)
points = sy.hands.hand_landmarks(keys.resample(24), "right")


def finger(name, place, turn, axes):
    """Return the joints of a finger: four hinges with capsules, and the tip."""
    above, rest = "palm", np.block([[turn.as_matrix(), np.reshape(place, (3, 1))], [np.zeros(3), 1.0]])
    for k, length in enumerate((0.0, 0.045, 0.03, 0.026)):
        yield sy.Joint(
            f"{name}_{k}", above, kind=sy.Kind.HINGE, rest=rest, axis=axes[k],
            limit=sy.Interval(-0.5, 0.5) if k == 0 else sy.Interval(-0.2, 1.7),
            shapes=[sy.Capsule(a=(0, 0, 0), b=(0, length, 0), radius=0.009)] if k else (),
        )  # fmt: skip
        above, rest = f"{name}_{k}", np.eye(4)
        rest[1, 3] = length
    yield sy.Joint(f"{name}_tip", above, rest=rest)


X, Y, Z = np.eye(3)
joints = [sy.Joint("palm", shapes=[sy.Box(center=(0.0, -0.045, -0.012), size=(0.09, 0.07, 0.014))])]
joints += finger("thumb", (0.05, -0.06, 0.0), sy.Rotation.from_euler("ZX", (-35, 15), degrees=True), (Y, X, Z, Z))
for name, x in (("index", 0.03), ("middle", 0.0), ("ring", -0.03)):
    joints += finger(name, (x, 0.0, 0.0), sy.Rotation.identity(), (Z, X, X, X))
robot = sy.Skeleton(joints, name="right robot hand", up="y", meters_per_unit=1.0)

answer = sy.retarget_hand(points, robot, fps=24, clearance=0.0)
print(answer.report())
sy.render(answer.with_points(), "robot_hand.gif", size=(640, 400), fps=12, view=(-15, 10), shapes=True, force=True)
