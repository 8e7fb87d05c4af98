"""Count the hands whose side, fingers and joints are recognised.

    python benchmarks/hands_recognised.py FOLDER [--add]

FOLDER holds one folder for each collection of models, as ``hands_recognised.toml`` names them: that file has the hands
of each model, which were checked against the names of its links. ``--add`` prints entries for
models below FOLDER that the file lacks, as they are recognised, to be checked and added.

A hand is right if its side, its fingers, their order and the joints of each are those of the file; doubtful if so, but
a note says that something is in doubt; else wrong. Each model is read once more with all names of joints and links
taken away, so that only its shape tells.
"""

import argparse
import sys
import tomllib
import warnings
from pathlib import Path

from common import machine, save, table

import synovia as sy
from synovia.model.anatomy.hands.find import hands_of

KNOWN = Path(__file__).with_suffix(".toml")
DOUBTS = ("doubtful", "would be")


def found_in(skeleton):
    """Return the hands of a skeleton as (side, {finger: (first row, number of joints)}, in doubt)."""
    out = []
    for hand in hands_of(skeleton):
        fingers = {
            one.name: (skeleton.value_index(one.joints[0]), len(one.joints)) for one in hand.fingers
        }  # fmt: skip
        out.append((hand.side, fingers, any(word in note for note in hand.notes for word in DOUBTS)))
    return out


def nameless(skeleton):
    """Return a skeleton without names."""
    keys = [f"n{row}" for row in range(len(skeleton))]
    joints = []
    for row, joint in enumerate(skeleton.joints):
        parent, leader = skeleton.parents[row], skeleton.leader_rows.get(row)
        mimic = None if leader is None else sy.Mimic(keys[leader], joint.mimic.ratio)
        joints.append(
            sy.Joint(keys[row], None if parent < 0 else keys[parent], kind=joint.kind, rest=joint.rest,
                     axis=joint.axis, limit=joint.limit, mimic=mimic)
        )  # fmt: skip
    return sy.Skeleton(joints, name="machine")


def expected(skeleton, hands):
    """Return hands of the file in the form of ``found_in``, without doubts."""
    return [
        (None if side == "none" else side.split("_")[0],
         {name: (skeleton.value_index(first), count) for name, (first, count) in fingers.items()})
        for side, fingers in hands.items()
    ]  # fmt: skip


def verdict(found, wanted):
    """Return the verdict on all hands of a model."""
    if not found and wanted:
        return "not found"
    if sorted(map(repr, wanted)) != sorted(repr(one[:2]) for one in found):
        same = sorted(repr(one[1]) for one in wanted) == sorted(repr(one[1]) for one in found)
        return "side unknown" if same and all(one[0] is None for one in found) else "wrong"
    return "doubtful" if any(one[2] for one in found) else "right"


def entry(name, skeleton):
    """Return the entry of a model for the file."""
    lines = [f'["{name}"]']
    for k, (side, fingers, _) in enumerate(found_in(skeleton)):
        key = side or ("none" if k == 0 else f"none_{k}")
        shown = ", ".join(
            f'{finger} = ["{skeleton.joint_keys[row]}", {count}]' for finger, (row, count) in fingers.items()
        )
        lines.append(f"{key} = {{{shown}}}")
    return "\n".join(lines)


def main():
    """Count, and return 1 if a hand is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of the models")
    parser.add_argument("--add", action="store_true", help="print entries for models that the file lacks")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = tomllib.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else {}
    where, rows, counts, bare_counts = machine(), [], {}, {}
    if options.add:
        for path in sorted(p for p in options.folder.rglob("*") if p.suffix in (".urdf", ".xml")):
            name = path.relative_to(options.folder).as_posix()
            if name not in known:
                try:
                    print(entry(name, sy.load_skeleton(path)))
                except sy.SynoviaError as error:
                    print(f"# {name}: {error}")
        return 0
    for name, hands in known.items():
        path = options.folder / name
        if not path.exists():
            print(f"{name}: not below {options.folder}", file=sys.stderr)
            continue
        skeleton = sy.load_skeleton(path)
        found, wanted = found_in(skeleton), expected(skeleton, hands)
        bare = found_in(nameless(skeleton))
        told, by_shape = verdict(found, wanted), verdict(bare, wanted)
        counts[told] = counts.get(told, 0) + 1
        bare_counts[by_shape] = bare_counts.get(by_shape, 0) + 1
        shown = "; ".join(
            f"{side or 'no side'}: " + " ".join(f"{finger} {count}" for finger, (_, count) in fingers.items())
            for side, fingers, _ in found
        )
        rows.append([name, shown or "no hand", told, by_shape])
    total = ", ".join(f"{count} {what}" for what, count in sorted(counts.items(), key=lambda one: -one[1]))
    bare_total = ", ".join(f"{count} {what}" for what, count in sorted(bare_counts.items(), key=lambda one: -one[1]))
    text = "\n\n".join([
        table(["model", "hands: joints of each finger", "verdict", "by shape alone"], rows),
        f"{len(rows)} models: {total}. By shape alone: {bare_total}.",
    ])  # fmt: skip
    save("hands_recognised", "Hands that are recognised", {"models": rows, "counts": counts}, text, where)
    return 0 if counts.get("wrong", 0) + counts.get("not found", 0) == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
