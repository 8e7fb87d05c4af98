"""Two hands, planted feet
=======================

Several goals at once: both hands reach, both feet stay where they are. The root of the body is free, so hips and trunk
help.
"""

import synovia as sy

body = sy.bundled("humanoid")
goals = [
    sy.PositionGoal("left_hand", (0.55, 1.35, 0.35)),
    sy.PositionGoal("right_hand", (-0.30, 0.75, 0.45)),
    sy.ContactGoal("left_foot"),
    sy.ContactGoal("right_foot"),
]
solution = sy.solve(body, goals, root="free")
print(solution)
sy.picture(solution, path="two_hands.png", size=(900, 700), force=True)
