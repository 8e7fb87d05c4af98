"""Where should the elbow go?
==========================

A hand at one place leaves the elbow free on a circle. A pole goal bends the arm towards a point. The pale arms are the
answers for other poles; the closed form finds each in microseconds.
"""

import synovia as sy

body = sy.bundled("humanoid")
goals = [sy.PositionGoal("left_hand", (0.3, 1.2, 0.35)), sy.PoleGoal("left_lower_arm", tip="left_hand", name="elbow")]
ik = sy.IK(body, goals, "two-bone")
poles = [(0.6, 2.4, 0.0), (1.2, 1.6, 0.0), (0.9, 1.0, -0.5), (0.3, 0.3, -0.2)]
poses = [ik.solve({"elbow": pole}).pose for pole in poles]
sy.picture(poses, path="elbow.png", size=(900, 700), force=True)
