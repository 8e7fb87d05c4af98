"""Where the real models and motions lie that some tests and benchmarks read."""

import os
from pathlib import Path


def shared_data_folder() -> Path:
    """Return the folder of real models and motions, whether or not it is there: SYNOVIA_DATA, else ../shared/data."""
    override = os.environ.get("SYNOVIA_DATA")
    folder = Path(override).expanduser() if override else Path(__file__).parents[2] / "shared" / "data"
    return folder.resolve()
