"""Judge of the foot lock: how still feet stand, how deep they sink, and what it costs the rest of the body.

    python benchmarks/foot_lock.py clip.bvh --up z --unit 0.056444 [--locked locked.bvh]

The figures are those of ``tests/foot_figures.py``, which reads contact from the original clip alone.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import synovia as sy
from foot_figures import foot_figures


def main():
    """Judge a clip that is locked here, or one that was locked before."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clip")
    parser.add_argument("--up", required=True, choices="xyz")
    parser.add_argument("--unit", type=float, default=1.0, help="metres per unit of the file")
    parser.add_argument("--locked", help="a clip that was locked already; without, it is locked here")
    options = parser.parse_args()
    before = sy.load_motion(options.clip)
    after = sy.load_motion(options.locked) if options.locked else sy.foot_lock(before, up=options.up).motion
    print(json.dumps(foot_figures(before, after, options.up, options.unit), indent=2))


if __name__ == "__main__":
    main()
