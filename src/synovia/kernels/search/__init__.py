"""What surrounds every algorithm: attempts from many starts, when to stop, and what a miss means."""
