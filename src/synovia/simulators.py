"""Joint values in the order and units of simulators and robots."""

from synovia.model.orders import JointOrder as JointOrder
from synovia.model.simulators import from_qpos as from_qpos
from synovia.model.simulators import to_qpos as to_qpos
