"""Additional functions and types for skeletons."""

from synovia.io.bundled import bundled_names as bundled_names
from synovia.model import Site as Site
from synovia.model.combined import separate as separate
from synovia.model.limits import Limit as Limit
from synovia.model.loops.assemblies import assemblies as assemblies
from synovia.model.simulators import JointOrder as JointOrder
from synovia.retargeting import stand_at_rest as stand_at_rest
