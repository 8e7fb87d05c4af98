"""How a page is served: the guarded server, and who may connect."""
