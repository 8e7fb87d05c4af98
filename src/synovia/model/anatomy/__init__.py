"""The anatomy of a body: roles of joints from names and from the shape of the skeleton; axes, feet and people."""
