"""Position and rotation
=====================

A gripper must often be at a place *and* point downwards. A pose goal asks for both. The axes of the target are drawn at
the tool.
"""

import synovia as sy

arm = sy.bundled("arm7")
down = sy.Rotation.from_euler("x", 180, degrees=True)
solution = sy.solve(arm, sy.PoseGoal("tool", position=(0.5, -0.2, 0.25), rotation=down))
print(solution)
print("the tool's z axis in the world:", solution.pose.matrix("tool")[:, 2].round(6))
sy.picture(solution, path="pose_goal.png", size=(900, 640), force=True)
