"""SMPL: the user's own model of a body, and clips of AMASS, which need it."""
