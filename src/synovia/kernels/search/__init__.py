"""Search for all solvers: attempts from many starts, stop rules, polishing and classification of misses."""
