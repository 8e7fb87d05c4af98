"""One target, four solvers
========================

All solvers reach the target, but not with the same pose: there are many. The Jacobian family changes all joints a
little, cyclic coordinate descent turns the last joints most.
"""

from PIL import Image

import synovia as sy

chain = sy.Skeleton.chain([(0.02 * (i % 2), 0.2 * i, 0.0) for i in range(9)])
goal = sy.PositionGoal("joint8", (0.75, 0.6, 0.3))
pictures = []
for name in ("lm", "fabrik", "ccd", "particles"):
    solution = sy.solve(chain, goal, name)
    print(f"{name:10} {solution.status.name} in {solution.steps} steps")
    pictures.append(sy.picture(solution, size=(440, 420), title=name))
sheet = Image.new("RGB", (880, 840))
for i, one in enumerate(pictures):
    sheet.paste(one, (440 * (i % 2), 420 * (i // 2)))
sheet.save("solvers.png")
