"""Joint values in the order and units of simulators and robots."""

from synovia.model.orders import JointOrder as JointOrder
