"""The engine ``ray``: portions on a Ray cluster, whose machines share the same folders.

Ray Data streams the portions to a pool of actors that grows with the cluster. Each actor has a process that holds the
prepared task, with its model and compiled problem. If a machine fails, Ray tries its portions again; if a process dies,
its actor tries the portion again. So an input that kills every process becomes a row of the ledger. Results arrive in
any order; the process that started the run publishes them, as with the local engine.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import socket
from collections import deque
from collections.abc import Generator, Iterable
from typing import Any, Final

from synovia.batch.pool import Worker
from synovia.batch.work import Portion, Result, Task
from synovia.errors import SynoviaError
from synovia.io.base import optional_package

_MOST_ACTORS: Final = 100_000  # number of actors that no cluster reaches, for a pool without a limit
_PATIENCE: Final = 5.0  # seconds to wait until a cluster answers
_HELLO: Final = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"  # preface of HTTP/2, which gRPC uses, and empty settings
)
_SETTINGS: Final = b"\4"  # frame type of the first frame in the answer
# largest number of blocks; a block is the unit that Ray assigns to an actor, and repeats if it is lost
_BLOCKS: Final = 4000


class Cluster:
    """A Ray cluster.

    Args:
        address: Address of a running cluster; None for ``RAY_ADDRESS``, else for a new cluster on this machine.
        workers: Largest number of actors; None for one per core of the cluster.

    Raises:
        MissingExtraError: If Ray is not installed.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """Import Ray."""
        self._ray = optional_package("ray", "the engine 'ray' needs Ray", "ray")
        self._data = optional_package("ray.data", "the engine 'ray' needs Ray Data", "ray")
        self._address = address
        self._workers = workers

    def run(self, task: Task, portions: Iterable[Portion]) -> Generator[Result]:
        """Yield results in the order in which portions finish; closing the generator stops the work.

        Raises:
            SynoviaError: If the cluster cannot be reached or fails.
        """
        left = {portion.number: portion for portion in portions}
        if not left:
            return
        task.prepare()  # report wrong settings once here, not from every actor
        own = not self._ray.is_initialized()
        if own:
            self._connect()
        try:
            for row in self._results(task, list(left.values())):
                result: Result = pickle.loads(row["result"])  # noqa: S301  pickled by our own actors
                if left.pop(result.number, None) is not None:
                    yield result
        except self._ray.exceptions.RayError as error:
            raise SynoviaError(f"the Ray cluster stopped with an error: {str(error).partition(chr(10))[0]}") from error
        finally:
            if own:
                self._ray.shutdown()

    def _connect(self) -> None:
        """Join the cluster, or start one on this machine.

        Raises:
            SynoviaError: If the cluster cannot be reached.
        """
        address = self._address or os.environ.get("RAY_ADDRESS")
        try:
            if address:
                _check_answers(address)
            self._ray.init(address=self._address, logging_level=logging.ERROR, log_to_driver=False)
        except (OSError, RuntimeError, ValueError) as error:
            raise SynoviaError(
                "cannot connect to a Ray cluster",
                where=address or "this machine",
                hint="'ray start --head' starts one on this machine; '--address auto' connects to it",
            ) from error

    def _results(self, task: Task, portions: list[Portion]) -> Iterable[Any]:
        """Return rows with the results of portions, as Ray Data streams them."""
        context = self._data.DataContext.get_current().copy()
        context.enable_progress_bars = False
        for name in ("ray.data", "ray"):
            logging.getLogger(name).setLevel(logging.ERROR)
        context.execution_options.preserve_order = False
        with self._data.DataContext.current(context):
            rows = [{"portion": pickle.dumps(portion)} for portion in portions]
            dataset = self._data.from_items(rows, override_num_blocks=min(len(rows), _BLOCKS))
            pool = self._data.ActorPoolStrategy(min_size=1, max_size=self._workers or _MOST_ACTORS)
            done = dataset.map_batches(
                _Actor, fn_constructor_args=(pickle.dumps(task),), batch_size=1, compute=pool, num_cpus=1
            )  # fmt: skip
            return done.iter_rows()


def _check_answers(address: str) -> None:
    """Check quickly that a gRPC server, as Ray uses, answers at an address; Ray itself would wait for minutes.

    Args:
        address: HOST:PORT, ray://HOST:PORT, or a word such as "auto", which is not checked.

    Raises:
        ConnectionError: If no gRPC server answers at the address; other kinds of OSError are possible.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and port.isascii() and port.isdecimal()):
        return
    with socket.create_connection((host.strip("[]"), int(port)), _PATIENCE) as line:
        if os.environ.get("RAY_USE_TLS", "0") != "0":  # a TLS server cannot read the plain preface
            return
        line.sendall(_HELLO)
        if line.makefile("rb").read(4)[3:] != _SETTINGS:
            raise ConnectionError("the server at this address is not a gRPC server")


class _Actor:
    """A worker of the cluster.

    Args:
        task: The task as a pickle.
    """

    def __init__(self, task: bytes) -> None:
        """Create the worker; its process starts with the first portion."""
        self._worker = Worker(pickle.loads(task), deque(), queue.SimpleQueue())  # noqa: S301  from the process of the run

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the results of portions."""
        results = [self._worker.do(pickle.loads(portion)) for portion in batch["portion"]]  # noqa: S301
        return {"result": [pickle.dumps(result) for result in results]}

    def __del__(self) -> None:
        """End the process."""
        self._worker.stop()
