"""One tick of a servo: the velocities that keep all limits, now and later, and the choice among them.

Terms in this folder:
- A sample is the joint values at the end of a tick.
- A stop is a motion from a sample to rest. The known stop was found in an earlier tick; the body may always follow it.
- The answer is the solved pose to which the joints go.
- The feed is the motion of an axis's target.
- A goal is held at its target, followed (moves with its target), or far: the joints go to the answer.
- A promised row is a residual row of a goal that the stop has to keep, see ``levels.promised_rows``.
"""

# The path of all targets: one row for each waypoint, with its coordinate along the path and the arm of its corner. The
# rounding of a corner begins and ends this far from the waypoint, in the same coordinate (in the first row: the longest
# arm). Then follow, for each goal, its target, and the displacement and the rotation vector (in the frame of the
# target) per unit of the coordinate until the next waypoint
PATH_PLACE, PATH_ARM, PATH_GOAL = 0, 1, 2
PATH_WAY, PATH_TURN, PATH_GOAL_WIDTH = 16, 19, 22
# Values of ``along``: coordinates on the path (of the body, of a pose, where a stop begins, where the known stop ends),
# and the number of ticks at rest without progress
ALONG_NOW, ALONG_POSE, ALONG_BEGIN, ALONG_END, ALONG_WAITS = 0, 1, 2, 3, 4
ALONG_WIDTH = 5
