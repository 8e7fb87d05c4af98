"""What is most important?
=======================

The hands are asked for more than the body can give. `full-body` obeys the order of priorities strictly: the first goal
is met exactly, the next ones use what is left.
"""

import numpy as np
from PIL import Image

import synovia as sy

body = sy.bundled("humanoid")
wanted = {"left_hand": (0.9, 1.8, 0.5), "right_hand": (-0.9, 1.6, 0.5)}
pictures = []
for title, levels in (("left hand first", (0, 1)), ("right hand first", (1, 0))):
    goals = [
        sy.ContactGoal("left_foot", priority=0),
        sy.ContactGoal("right_foot", priority=0),
        sy.PositionGoal("left_hand", wanted["left_hand"], priority=1 + levels[0]),
        sy.PositionGoal("right_hand", wanted["right_hand"], priority=1 + levels[1]),
        sy.RestGoal(),
    ]
    solution = sy.solve(body, goals, "full-body", root="free")
    missed = {hand: float(np.linalg.norm(solution.pose.position(hand) - at)) for hand, at in wanted.items()}
    print(title, *(f"{hand} {error:.3f} m off" for hand, error in missed.items()), sep=", ")
    pictures.append(sy.picture(solution, size=(480, 520), title=title, view="front"))
sheet = Image.new("RGB", (960, 520))
for i, one in enumerate(pictures):
    sheet.paste(one, (480 * i, 0))
sheet.save("order.png")
