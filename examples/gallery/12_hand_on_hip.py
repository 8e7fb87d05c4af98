"""A hand on the hip
=================

The target of a relative goal is in the frame of another joint. It moves with the body: the hand stays on the hip,
wherever the other goals move the hips. A direction goal keeps the chest upright, and a rest goal the other joints near
the rest pose.
"""

import synovia as sy

body = sy.bundled("humanoid")
goals = [
    sy.RelativeGoal("right_hand", "hips", (-0.22, 0.08, 0.05), name="hand on hip"),
    sy.PositionGoal("hips", (0.06, 0.93, 0.0)),
    sy.PositionGoal("left_hand", (0.55, 1.6, 0.2)),
    sy.ContactGoal("left_foot"),
    sy.ContactGoal("right_foot"),
    sy.DirectionGoal("chest", axis=(0, 1, 0), direction=(0, 1, 0)),
    sy.RestGoal(),
]
solution = sy.solve(body, goals, root="free")
print(solution)
sy.picture(solution, path="hand_on_hip.png", size=(900, 700), force=True)
