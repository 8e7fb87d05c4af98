"""Search around every algorithm: attempts from many starts, stop rules, polishing and classification of misses."""
