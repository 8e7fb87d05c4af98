"""A body that follows live targets, one tick after the other, within limits of velocity, acceleration and jerk."""

from synovia.servo.command import Command
from synovia.servo.filter import OneEuro
from synovia.servo.servo import Servo

__all__ = ["Command", "OneEuro", "Servo"]
