"""The clip of a page: what plays, the layers and keys on top of it, and curves of its joints."""
