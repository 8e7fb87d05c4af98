"""Keep a distance, stay above a plane
===================================

Some goals are one-sided: they only act when they are violated. Here both hands reach for one point, but stay 30 cm
apart, and the left knee stays above a plane. So the right hand, which comes last, misses its target.
"""

import synovia as sy

body = sy.bundled("humanoid")
goals = [
    sy.PositionGoal("left_hand", (0.15, 1.2, 0.45), priority=1),
    sy.PositionGoal("right_hand", (0.15, 1.2, 0.45), priority=2),
    sy.DistanceGoal("left_hand", "right_hand", minimum=0.3),
    sy.PlaneGoal("left_lower_leg", point=(0, 0.62, 0), normal=(0, 1, 0)),
    sy.ContactGoal("right_foot"),
]
solution = sy.solve(body, [*goals, sy.RestGoal()], "full-body", root="free")
pose = solution.pose
apart = ((pose.position("left_hand") - pose.position("right_hand")) ** 2).sum() ** 0.5
print(f"the hands are {apart:.3f} m apart, the left knee is at {pose.position('left_lower_leg')[1]:.3f} m")
sy.picture(solution, path="distance.png", size=(900, 700), force=True)
