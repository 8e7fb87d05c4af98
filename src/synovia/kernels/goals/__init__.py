"""Goals: residuals with derivatives, and bounds that prove a goal unreachable."""
