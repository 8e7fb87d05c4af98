"""Limits change the answer
========================

The same target, twice: with the limits of the arm, and with a stiff second joint (pale). Every answer is inside its
limits; if that makes the target unreachable, the status says so.
"""

import synovia as sy

arm = sy.bundled("arm7")
stiff = arm.with_limits({"joint2": (-0.3, 0.3)})
goal = sy.PositionGoal("tool", (0.35, 0.35, 0.3))
free, held = sy.solve(arm, goal), sy.solve(stiff, goal)
for name, solution in (("as built", free), ("stiff", held)):
    at = solution.pose["joint2"]
    print(f"{name:9} joint2 {at:6.3f} rad, {solution.status.name}, at limits: {solution.active_limits}")
sy.picture([sy.Pose(arm, held.q), free.pose], path="limits.png", size=(900, 640), force=True)
