"""The full-body solver: goals in strict priorities within hard limits."""
