"""How a page is served: the protected server, and the rules for who may connect."""
