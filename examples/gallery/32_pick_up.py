"""Pick something up
=================

A clip out of nothing but goals: both hands go down to knee height and up again, the feet stay, and the balance is kept.
Nobody drew a frame.
"""

import numpy as np

import synovia as sy

body = sy.bundled("humanoid")
corners = [(x, 0.0, z) for x in (-0.14, 0.14) for z in (-0.06, 0.14)]
goals = [
    sy.ContactGoal("left_foot", priority=0),
    sy.ContactGoal("right_foot", priority=0),
    sy.CenterOfMassGoal(polygon=corners, priority=0),
    sy.PositionGoal("left_hand", priority=1),
    sy.PositionGoal("right_hand", priority=1),
    sy.RestGoal(),
]
ease = 0.5 - 0.5 * np.cos(np.linspace(0.0, 2.0 * np.pi, 48))[:, None]
left = np.array((0.28, 1.25, 0.35)) + ease * (-0.08, -0.75, 0.10)
targets = {"left_hand": left, "right_hand": left * (-1, 1, 1)}
clip = sy.IK(body, goals, "full-body", root="free").track(targets, fps=16)
print(clip)
sy.render(clip, "pick_up.gif", size=(480, 420), force=True)
