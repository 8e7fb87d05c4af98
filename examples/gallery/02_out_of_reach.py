"""A target out of reach
=====================

What if the target is too far away? You get the best pose, and a reason that you can read. The red ring is the target
that was missed.
"""

import synovia as sy

arm = sy.bundled("arm7")
solution = sy.solve(arm, sy.PositionGoal("tool", (0.9, 0.3, 0.9)))
print(solution.status.name)
print(*solution.explain(), sep="\n")
sy.picture(solution, path="out_of_reach.png", size=(900, 640), force=True)
