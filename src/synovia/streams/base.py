"""Protocols for sources and sinks of live motion, to implement for your own devices; and UDP sockets."""

from __future__ import annotations

import ipaddress
import socket
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from synovia.errors import FileError, InputError
from synovia.model import Pose, Skeleton
from synovia.model.geometry import Array

LARGEST: Final = 65_507  # bytes; largest payload of a UDP datagram
_AT_ONCE: Final = 256, 2**20  # most datagrams and bytes that one call reads; the system drops excess datagrams


class Sample(NamedTuple):
    """One pose that a source delivers.

    Args:
        pose: Joint values (nq,), positions of all joints (n, 3), or landmarks, see ``LiveRetarget.step``.
        time: Time stamp on the clock of the source, seconds; None for a pose that applies at once.
    """

    pose: Array
    time: float | None


class Source(Protocol):
    """A source of poses.

    Attributes:
        skeleton: The body that moves; None until the source has received enough data to know it, and for landmarks.
        ended: Whether no more samples will arrive.
        dropped: Number of dropped messages for each reason.
    """

    skeleton: Skeleton | None
    ended: bool
    dropped: Counter[str]

    def poll(self) -> Sequence[Sample]:
        """Return the samples that have arrived since the last call, without waiting."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class Sink(Protocol):
    """A sink for poses."""

    def send(self, pose: Pose, time: float) -> None:
        """Send a pose and its time, seconds since the start."""
        ...

    def close(self) -> None:
        """Write pending data, and release all resources."""
        ...


class Datagrams:
    """A UDP socket that receives without waiting.

    Args:
        host: The address to listen on.
        port: The port; 0 for any free port.
        remote: Whether the address may be reachable from other machines.

    Attributes:
        address: The address and the port.

    Raises:
        InputError: If the address is reachable from other machines, and ``remote`` is not set.
        FileError: If the port cannot be used.
    """

    def __init__(self, host: str, port: int, *, remote: bool = False) -> None:
        """Open the socket."""
        family = _checked(host, port, remote)
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise FileError(f"cannot listen on port {port} of {host} ({error.strerror})") from error
        self._socket.setblocking(False)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]

    def read(self) -> list[bytes]:
        """Return the datagrams that have arrived, at most 256 and about 1 MiB."""
        out: list[bytes] = []
        most, left = _AT_ONCE
        for _ in range(most):
            try:
                out.append(self._socket.recv(LARGEST))
            except BlockingIOError:
                break
            except OSError:  # for example, an earlier packet was sent to a port where nobody listened
                continue
            left -= len(out[-1])
            if left < 0:
                break
        return out

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class Sender:
    """A UDP socket that sends to one address.

    Args:
        host: The address.
        port: The port.
        remote: Whether the address may be that of another machine.

    Raises:
        InputError: If the address is that of another machine, and ``remote`` is not set.
    """

    def __init__(self, host: str, port: int, *, remote: bool = False) -> None:
        """Open the socket."""
        self._socket = socket.socket(_checked(host, port, remote), socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._to = host, port
        self.failed = 0

    def send(self, data: bytes) -> None:
        """Send a datagram; a datagram that cannot be sent is dropped and counted in ``failed``."""
        try:
            self._socket.sendto(data, self._to)
        except OSError:
            self.failed += 1

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _checked(host: str, port: int, remote: bool) -> socket.AddressFamily:
    """Check an address; return its address family.

    Raises:
        InputError: If the address or the port is invalid, or the address is not local and ``remote`` is not set.
    """
    if not 0 <= port < 2**16:
        raise InputError("port", value=port, expected="0 to 65535")
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise InputError("host", value=host, expected="an IP address, such as 127.0.0.1") from None
    if not address.is_loopback and not remote:
        raise InputError(
            "host", value=host, expected="a local address, such as 127.0.0.1",
            hint="remote=True (--remote) allows other addresses",
        )  # fmt: skip
    return socket.AF_INET6 if address.version == 6 else socket.AF_INET
