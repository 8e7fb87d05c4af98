"""Live control: filters and clutches for inputs, and the results of ticks."""

from synovia.retargeting import LiveCalibration as LiveCalibration
from synovia.retargeting import LiveReport as LiveReport
from synovia.servo import Clutch as Clutch
from synovia.servo import OneEuro as OneEuro
from synovia.servo import Tick as Tick
