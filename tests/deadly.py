"""Tasks that kill the process that works on them; the processes of a pool import them by name."""

import os
import signal
import time
from pathlib import Path

from synovia.jobs import Convert


class Deadly:
    """A task that kills its process at one input."""

    name = "deadly"

    def settings(self):
        return {}

    def prepare(self):
        pass

    def work(self, item, output):
        if item.name == "b.txt":
            os._exit(3)
        output.write_bytes(item.path.read_bytes())
        return {"size": item.path.stat().st_size}

    def picture(self, output, source):
        return None


class KilledAtFirst(Deadly):
    """A task whose process is killed some times before it is ready.

    Args:
        left: A folder with a file for each time.
        how: The signal, or an exit code.
    """

    name = "killed-at-first"

    def __init__(self, left, how=signal.SIGTERM):
        self.left, self.how = str(left), how

    def prepare(self):
        for file in Path(self.left).iterdir():
            file.unlink()
            if isinstance(self.how, signal.Signals):
                os.kill(os.getpid(), self.how)
            os._exit(self.how)


class ConvertKilledOnce(Convert):
    """A conversion whose process is killed, from outside, as it seems, in the middle of the first clip that it writes.

    The variable SYNOVIA_LEFT names a file that is there until then.
    """

    def work(self, item, output):
        figures = super().work(item, output)
        try:
            Path(os.environ["SYNOVIA_LEFT"]).unlink()
        except FileNotFoundError:
            return figures
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("still alive")


class Busy(Convert):
    """A conversion that never ends at an input that says "busy", and leaves a mark with the number of its process.

    The variable SYNOVIA_MARKS names the folder of marks.
    """

    def endings(self):
        return [".txt"]

    def prepare(self):
        pass

    def work(self, item, output):
        if item.path.read_text() == "busy":
            Path(os.environ["SYNOVIA_MARKS"], f"busy-{os.getpid()}").touch()
            while True:
                time.sleep(0.01)
        output.write_bytes(item.path.read_bytes())
        return {}
