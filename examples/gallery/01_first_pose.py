"""A first pose
============

Where should the tool of the arm be? Say so in metres, and Synovia bends the joints. The green ring is the target.
"""

import synovia as sy

arm = sy.bundled("arm7")
solution = sy.solve(arm, sy.PositionGoal("tool", (0.45, -0.3, 0.5)))
print(solution)
sy.picture(solution, path="first_pose.png", size=(900, 640), force=True)
