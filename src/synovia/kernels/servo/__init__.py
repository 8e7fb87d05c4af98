"""One tick of a servo: the velocities that keep all limits, now and later, and the choice among them.

Terms in this folder:
- A sample is the joint values at the end of a tick.
- A stop is a motion from a sample to rest. The known stop was found in an earlier tick; the body may always follow it.
- The answer is the solved pose to which the joints go.
- The feed is the motion of an axis's target.
- A goal is held at its target, followed (moves with its target), or far: the joints go to the answer.
- A promised row is a residual row of a goal that the stop has to keep, see ``levels.promised_rows``.
"""
