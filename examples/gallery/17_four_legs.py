"""Four legs
=========

Not only people have joints. The dog gives its paw: three feet stay planted, the head looks up.
"""

import numpy as np

import synovia as sy

dog = sy.bundled("quadruped")
paws = ["right_fore_paw", "left_hind_paw", "right_hind_paw"]
start = dog.rest_pose().position("left_fore_paw")
nose = dog.rest_pose().position("nose")
goals = [
    *(sy.ContactGoal(paw) for paw in paws),
    sy.PositionGoal("left_fore_paw", np.add(start, (0.0, 0.30, 0.22))),
    sy.PositionGoal("nose", np.add(nose, (0.0, 0.12, -0.05))),
    sy.RestGoal(),
]
solution = sy.solve(dog, goals, "full-body", root="free")
print(solution)
sy.picture(solution, path="paw.png", size=(900, 640), force=True)
