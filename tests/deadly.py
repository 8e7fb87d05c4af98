"""A task that kills the process that works on it; the processes of a pool import it by name."""

import os


class Deadly:
    """A task that kills its process at one input."""

    name = "deadly"

    def settings(self):
        return {}

    def prepare(self):
        pass

    def run(self, item, output):
        if item.name == "b.txt":
            os._exit(3)
        output.write_bytes(item.path.read_bytes())
        return {"size": item.path.stat().st_size}

    def picture(self, output):
        return None
