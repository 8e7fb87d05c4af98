"""
A first pose
============

Where should the hand be? Say so, and Synovia bends the arm.
"""

import synovia as sy

arm = sy.bundled("arm7")
solution = sy.solve(arm, sy.PositionGoal("tool", (0.4, 0.1, 0.5)))
print(solution)
sy.picture(solution, path="first_pose.png", force=True)
