"""Why was it missed?
==================

Which goal or limit is in the way, and how far would the target have to move? Each reason was tried by solving again.
"""

import synovia as sy

body = sy.bundled("humanoid")
goals = [
    sy.ContactGoal("left_foot", priority=0),
    sy.ContactGoal("right_foot", priority=0),
    sy.PositionGoal("left_hand", (0.75, 1.95, 0.5), priority=1),
    sy.RestGoal(),
]
solution = sy.solve(body, goals, "full-body", root="free")
print(*solution.explain(), sep="\n")
sy.picture(solution, path="why.png", size=(900, 700), force=True)
