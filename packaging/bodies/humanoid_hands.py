"""The surface of the bundled humanoid whose fingers bend: the same figure, with the joints of the fingers."""

from humanoid import pieces

__all__ = ["pieces"]
