"""Live control: filters and clutches for inputs, and the results of ticks."""

import synovia.lazy as _lazy
from synovia.retargeting import LiveCalibration as LiveCalibration
from synovia.servo import Clutch as Clutch
from synovia.servo import OneEuro as OneEuro
from synovia.servo import Tick as Tick

__getattr__ = _lazy.renamed(__name__)  # for names that have changed
