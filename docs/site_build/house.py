"""The picture of the layers, from the contract of import-linter: ``python docs/site_build/house.py`` draws it again.

The picture is committed, so that it is there without a build of the site; a test compares it with the contract.
"""

import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "pictures" / "house.svg"
WORDS = {
    "cli": "command line",
    "formats": "single formats",
    "hands": "fingers, points",
    "live": "filters, clutches",
    "results": "types of results",
    "shapes": "distances",
    "skeletons": "more on bodies",
    "jax": "functions of JAX arrays",
    "torch": "functions of PyTorch tensors",
    "tensors": "solves and poses with gradients",
    "viewer": "live page",
    "jobs": "what commands do with files",
    "batch": "folders, tables",
    "plots": "diagrams",
    "lerobot": "data sets of robots",
    "streams": "live motion",
    "draw": "pictures, films",
    "retargeting": "other bodies, the judge",
    "comparison": "solvers compared",
    "covers": "shapes fitted to bodies",
    "clips": "points, feet, edits",
    "surface": "skins, meshes",
    "servo": "live targets within limits",
    "learning": "learned starts",
    "facade": "IK and solve, the interface for users",
    "tracking": "frame after frame",
    "diagnosis": "why a goal is missed",
    "ik": "compiled problem, targets, solutions",
    "solver": "settings of each algorithm",
    "problem": "from skeleton and goals to packed arrays",
    "bodies": "masses, limits, support",
    "files": "goal, track, layer and pose files",
    "layers": "layers of an edit",
    "goals": "kinds of goals",
    "io": "file formats",
    "model": "skeletons, limits, poses, motions",
    "arguments": "checks",
    "compiling": "messages",
    "lazy": "late imports",
    "notebook": "pictures",
    "planting": "foot lock",
    "text": "JSON, TOML",
    "kernels": "compiled code",
    "options": "shared defaults",
    "errors": "every error",
}
WIDE, HIGH, GAP = 820, 34, 6


def layers():
    """Return the layers, the highest first, each as a list of its packages and modules."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    found = next(one["layers"] for one in contracts if one["type"] == "layers")
    return [layer.split(" | ") for layer in found if layer != "__main__"]


def drawn():
    """Return the picture as SVG: a row for each layer, a box for each of its packages and modules."""
    rows = layers()
    height = len(rows) * (HIGH + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {height}" font-family="sans-serif">',
        f'<rect width="{WIDE}" height="{height}" rx="8" fill="#f4f7f6"/>',
    ]
    for number, row in enumerate(rows):
        y = GAP + number * (HIGH + GAP)
        width = (WIDE - GAP) / len(row) - GAP
        for place, name in enumerate(row):
            x = GAP + place * (width + GAP)
            middle = x + width / 2
            box = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{HIGH}"'
            line = f'x="{middle:.1f}" text-anchor="middle"'
            parts += [
                f'<rect {box} rx="4" fill="#d5ece7" stroke="#00705f"/>',
                f'<text {line} y="{y + 14}" font-size="12" font-weight="bold">{escape(name)}</text>',
                f'<text {line} y="{y + 28}" font-size="11">{escape(WORDS[name])}</text>',
            ]
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
