"""Reach around obstacles
======================

The same target twice. Without a ``ClearanceGoal``, the arm passes through the post and the board. With one, all links
stay 1 cm away from the obstacles and from each other. Lines join the nearest pairs; red ones are too near.
"""

import synovia as sy

world = sy.World(
    {
        "floor": sy.HalfSpace(normal=(0, 0, 1)),
        "post": sy.Cylinder(center=(0.38, 0.02, 0.4), radius=0.04, length=0.8),
        "shelf": [
            *(sy.Box(center=(0.62, 0, z), size=(0.28, 0.8, 0.02)) for z in (0.1, 0.6)),
            *(sy.Box(center=(x, y, 0.35), size=(0.02, 0.02, 0.5)) for x in (0.49, 0.75) for y in (-0.39, 0.39)),
        ],
        "can": sy.Cylinder(center=(0.64, 0.16, 0.2), radius=0.035, length=0.14),
    }
)
arm = sy.bundled("arm7")
reach = sy.PositionGoal("tool", (0.62, 0.0, 0.3))
straight = sy.solve(arm, reach)
around = sy.solve(arm, [reach, sy.ClearanceGoal(0.01, world=world)])
print(around)
for contact in around.contacts[:3]:
    first, second = contact.pair
    print(f"{first} to {second}: {1000 * contact.distance:.1f} mm")

sy.picture(straight, world=world, clearance=0.01, view=(110, 25), path="through.png", size=(900, 700), force=True)
sy.picture(around, view=(110, 25), path="around_the_post.png", size=(900, 700), force=True)
