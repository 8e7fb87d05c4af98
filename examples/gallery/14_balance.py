"""Keep the balance
================

The centre of mass must stay above the feet. Without this goal the body leans until it would fall (left). With it, the
hips move back while the hand reaches the same point (right).
"""

from PIL import Image

import synovia as sy

body = sy.bundled("humanoid")
corners = [(x, 0.0, z) for x in (-0.14, 0.14) for z in (-0.06, 0.14)]
feet = [sy.ContactGoal("left_foot"), sy.ContactGoal("right_foot")]
reach = sy.PositionGoal("right_hand", (-0.15, 0.55, 0.75))
pictures = []
for title, more in (("without balance", []), ("with balance", [sy.CenterOfMassGoal(polygon=corners)])):
    solution = sy.solve(body, [*feet, reach, *more, sy.RestGoal()], root="free")
    mass = solution.pose.center_of_mass()
    print(f"{title}: centre of mass at z = {mass[2]:.3f} m; the toes are at 0.14 m")
    pictures.append(sy.picture(solution, size=(480, 520), title=title, view="left"))
sheet = Image.new("RGB", (960, 520))
for i, one in enumerate(pictures):
    sheet.paste(one, (480 * i, 0))
sheet.save("balance.png")
