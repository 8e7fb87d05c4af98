"""Build hook: with SYNOVIA_WHEEL=platform, a wheel for one platform that holds the kernels compiled ahead.

Without it the wheel is pure Python and serves every platform, with numba (``synovia[jit]``) as the compiler.
``packaging/kernels.py`` compiles the kernels.
"""

import json
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PREBUILT = "src/synovia/kernels/prebuilt"


class PlatformWheel(BuildHookInterface):
    """Adds compiled kernels to a wheel and names the platform that they are for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, or nothing."""
        del version
        if os.environ.get("SYNOVIA_WHEEL") != "platform":
            return
        made = Path(self.root, PREBUILT, "made.json")
        if not made.exists():
            raise FileNotFoundError(f"{made}: expected compiled kernels. Run: python packaging/kernels.py")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{json.loads(made.read_text())['platform']}"
        build_data["artifacts"].append(f"{PREBUILT}/*")
