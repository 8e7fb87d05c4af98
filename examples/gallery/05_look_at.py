"""Look at something
=================

The head turns until its nose points at the target. An aim goal leaves the roll about that line free.
"""

import synovia as sy

body = sy.bundled("humanoid")
look = sy.AimGoal("head", point=(1.2, 1.0, 1.5), axis=(0, 0, 1))
solution = sy.solve(body, look, "aim")
print(solution)
sy.picture(solution, path="look.png", size=(900, 700), force=True)
