"""The memory of a stop of a whole body, see ``servo.whole``."""

from typing import Final

from synovia.kernels.layout import WHOLE, Table

STOP_OF_BODY: Final = (
    *WHOLE,
    Table("shapes", (2, 7)),  # stops of one axis: how the velocities and the accelerations end; the length of each
    Table("marks", (28, 9)),  # of both, at instants: place, velocity, acceleration and jerk; the time
)
