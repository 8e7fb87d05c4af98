"""The anatomy of a body: roles of joints by names and by the shape of the skeleton; axes, feet and people."""
