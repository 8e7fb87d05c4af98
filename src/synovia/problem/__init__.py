"""Problem assembly: reduce a skeleton to the joints that its goals need, and pack it into arrays for a kernel."""

from synovia.problem.bends import Bends, find_bends
from synovia.problem.pack import References, pack, table_of
from synovia.problem.reduced import Reduced, reduce
from synovia.problem.structure import hold_all_but

__all__ = ["Bends", "Reduced", "References", "find_bends", "hold_all_but", "pack", "reduce", "table_of"]
