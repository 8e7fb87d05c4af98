"""A hand on the hip
=================

The target of a relative goal is in the frame of another joint. It moves with the body: the hand stays on the hip,
wherever the other goals move the hips.
"""

import synovia as sy

body = sy.bundled("humanoid")
goals = [
    sy.RelativeGoal("right_hand", "hips", (-0.22, 0.08, 0.05), name="hand on hip"),
    sy.PositionGoal("hips", (0.06, 0.93, 0.0)),
    sy.PositionGoal("left_hand", (0.35, 1.6, 0.25)),
    sy.ContactGoal("left_foot"),
    sy.ContactGoal("right_foot"),
]
solution = sy.solve(body, goals, root="free")
print(solution)
sy.picture(solution, path="hand_on_hip.png", size=(900, 700), force=True)
