"""The clip of a page: the motion that plays, the layers and keys on top of it, and the curves of joints."""
