"""All poses of an arm for one target
==================================

A robot arm usually reaches a pose in several ways: elbow up or down, wrist turned or not. The closed form lists all of
them within the limits, the nearest to the start first.
"""

import synovia as sy

arm = sy.bundled("arm7")
down = sy.Rotation.from_euler("x", 180, degrees=True)
ik = sy.IK(arm, sy.PoseGoal("tool", position=(0.45, 0.25, 0.35), rotation=down), "segments")
branches = ik.branches()
print(len(branches), "poses, all exact:", branches.reached.all())
poses = [branches[i].pose for i in reversed(range(len(branches)))]
sy.picture(poses, path="branches.png", size=(900, 640), force=True)
