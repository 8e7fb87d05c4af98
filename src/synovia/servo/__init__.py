"""A body that follows live targets, one tick after the other, within limits of velocity, acceleration and jerk."""

from synovia.servo.servo import Servo
from synovia.servo.targets import Clutch, OneEuro, Twist
from synovia.servo.tick import Tick

__all__ = ["Clutch", "OneEuro", "Servo", "Tick", "Twist"]
