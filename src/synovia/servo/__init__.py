"""A body that follows live targets, one tick after the other, within limits of velocity, acceleration and jerk."""

from synovia.servo.clutch import Clutch
from synovia.servo.filter import OneEuro
from synovia.servo.parts import Servo
from synovia.servo.tick import Tick
from synovia.servo.twist import Twist

__all__ = ["Clutch", "OneEuro", "Servo", "Tick", "Twist"]
