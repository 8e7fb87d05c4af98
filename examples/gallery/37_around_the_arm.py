"""What is around the arm
======================

Obstacles have names, and can be moved. The picture shows them with the shapes of the arm, and the numbers say how near
they are.
"""

import synovia as sy

world = sy.World(
    {
        "floor": sy.HalfSpace(normal=(0, 0, 1)),
        "table": [
            sy.Box(center=(0, 0, 0.3), size=(0.5, 0.9, 0.04)),
            *(sy.Cylinder(center=(x, y, 0.14), radius=0.025, length=0.28) for x in (-0.2, 0.2) for y in (-0.4, 0.4)),
        ],
        "shelf": [
            *(sy.Box(center=(0, 0, z), size=(0.3, 0.6, 0.02)) for z in (0.02, 0.42, 0.82)),
            *(sy.Box(center=(0, y, 0.42), size=(0.3, 0.02, 0.82)) for y in (-0.3, 0.3)),
        ],
        "can": sy.Cylinder(radius=0.04, length=0.14),
        "ball": sy.Sphere(radius=0.06),
    }
)
aside = sy.Rotation.from_euler("z", 90, degrees=True)
places = {
    "table": (0.65, 0, 0),
    "shelf": ((0.1, -0.75, 0), aside),
    "can": (0.6, 0.25, 0.39),
    "ball": (0.62, -0.28, 0.38),
}
world = world.moved(places)

arm = sy.with_shapes(sy.bundled("arm7"))
down = sy.Rotation.from_euler("x", 180, degrees=True)
solution = sy.solve(arm, sy.PoseGoal("tool", (0.6, 0.25, 0.5), down))
nearest = {}
for link, shapes in arm.shapes.items():
    for shape in shapes:
        for name, contact in world.distances(shape, transform=solution.pose.transform(link)).items():
            nearest[name] = min(nearest.get(name, (9.0, "")), (contact.distance, str(link)))
for name, (distance, link) in sorted(nearest.items(), key=lambda item: item[1]):
    print(f"{name}: {100 * distance:.1f} cm from {link}")
sy.picture(solution, world=world, shapes=True, view=(100, 20), path="around.png", size=(1000, 720), force=True)
