"""Close a hand, and pinch
=======================

`humanoid_hands` is the bundled person with joints in the fingers: `left_index_1` to `left_index_3`, and so on. The left
hand makes a fist from joint values. Two position goals pinch a ball with the right hand.
"""

import numpy as np

import synovia as sy

body = sy.bundled("humanoid_hands")
fingers = ("index", "middle", "ring", "little")
fist = {f"left_{name}_{k}": np.radians(bend) for name in fingers for k, bend in ((1, 85), (2, 100), (3, 65))}
fist |= {"left_thumb_2": np.radians(35), "left_thumb_3": np.radians(60)}
thumb = body.joint("left_thumb_1").limit  # swing about the axis that bends the thumb
fist["left_thumb_1"] = sy.Rotation.from_rotvec(np.radians(45) * np.array(thumb.frame)[:, 0]).as_quat()
arms = {
    "left_upper_arm": sy.Rotation.from_euler("z", -72, degrees=True).as_quat(),
    "right_upper_arm": sy.Rotation.from_euler("z", 72, degrees=True).as_quat(),
    "left_lower_arm": np.radians(115),
    "right_lower_arm": np.radians(115),
}
start = sy.Pose(body, fist | arms)

ball = start.position("right_hand") + np.array([0.0, 0.12, 0.04])  # metres
radius = np.array([0.0, 0.006, 0.006])
goals = [sy.PositionGoal("right_index_tip", ball + radius), sy.PositionGoal("right_thumb_tip", ball - radius)]
solution = sy.solve(body, goals, start=start)
print(solution)
image = sy.picture(solution.pose, size=(1800, 1400), view=(20, 5))
image.crop((520, 30, 1280, 640)).save("close_a_hand.png")
