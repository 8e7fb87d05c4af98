"""One tick of a servo: the velocities that keep all limits, now and later, and the choice among them."""
