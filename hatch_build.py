"""Build hook: with SYNOVIA_WHEEL=platform, a wheel for one platform that holds the kernels compiled ahead.

Without it the wheel is pure Python and serves every platform, with numba (``synovia[jit]``) as the compiler.
``packaging/kernels.py`` compiles the kernels.
"""

import json
import os
import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PREBUILT = "src/synovia/kernels/prebuilt"
SOURCES = "src/synovia/kernels/compiler/sources.py"


class PlatformWheel(BuildHookInterface):
    """Adds compiled kernels to a wheel and names the platform that they are for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, or nothing."""
        del version
        wanted = os.environ.get("SYNOVIA_WHEEL", "")
        if not wanted:
            return
        if wanted != "platform":
            raise ValueError(f"SYNOVIA_WHEEL: expected platform or nothing, got {wanted!r}")
        file = Path(self.root, PREBUILT, "made.json")
        if not file.exists():
            raise FileNotFoundError(f"{file}: expected compiled kernels. Run: python packaging/kernels.py")
        made = json.loads(file.read_text())
        other = runpy.run_path(str(Path(self.root, SOURCES)))["changed_since"](made["sources"])
        if other:
            raise ValueError(f"the kernels were compiled from another {other}. Run: python packaging/kernels.py")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{made['platform']}"
        build_data["artifacts"].append(f"{PREBUILT}/*")
