"""Files of goals, tracks and poses: what people and other programs write by hand."""
