"""The parts of a body: which joint is what, by names and by the shape of the skeleton; its axes, feet and people."""
