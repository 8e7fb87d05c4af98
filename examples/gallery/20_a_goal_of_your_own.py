"""A goal of your own
==================

No goal says what you need? Write it in Python: a function of the pose whose numbers should be zero. Here both hands
hold a box: 40 cm apart and at the same height.
"""

import numpy as np

import synovia as sy

body = sy.bundled("humanoid")


def holds_box(pose):
    """Return how far the hands are from the sides of the box."""
    between = pose.position("left_hand") - pose.position("right_hand")
    return np.array([np.linalg.norm(between) - 0.4, between[1], between[2]])


goals = [sy.PositionGoal("left_hand", (0.2, 1.15, 0.40)), sy.CustomGoal(holds_box, tolerance=1e-3, name="box")]
solution = sy.solve(body, goals)
print(solution)
sy.picture(solution, path="box.png", size=(900, 700), force=True)
