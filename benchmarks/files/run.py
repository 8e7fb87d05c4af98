"""Files that other programs open: BVH in two libraries and in Blender, glTF by the validator and in a browser.

    python benchmarks/files/run.py --readers PYTHON --blender PYTHON --node FOLDER [--pictures FOLDER]

``--readers`` is an environment with ``pip install bvhio upc-pymotion``, ``--blender`` one with ``pip install bpy``,
``--node`` a folder in which ``npm install gltf-validator three`` was run. The browser needs playwright and a Chromium
here. What is not given is left out. Positions are compared with those of the motion that was written, relative to the
size of the body (the largest distance between two of its joints at rest). Reads the models of ../shared/data.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

import synovia as sy
from synovia.io.gltf.container import read_document
from synovia.io.gltf.scene import read_scene
from synovia.io.load import load_motions

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests")]
from common import machine, needed_data, save, table, verdicts  # noqa: E402

from browsing import FLAGS, browser_path  # noqa: E402

CLOSE = 1e-4
READERS = ("bvhio", "pymotion", "blender")


def clips(data):
    """Yield (name, motion): recordings, clips of characters, a robot and an animal, each with its own trouble."""
    for path in sorted((data / "motion").glob("*.bvh")):
        yield path.stem, sy.load_motion(path)
    for path in sorted((data / "character").glob("*.glb")):
        longest = max(load_motions(path), key=len)
        yield f"{path.stem} {longest.name}", longest
    walk = sy.load_motion(data / "motion" / "cmu_07_01_walk.bvh")
    yield "walk on g1", sy.retarget(walk, sy.load_skeleton(data / "robot" / "g1_29dof.urdf")).motion
    body = sy.bundled("quadruped")
    yield "quadruped", sy.Motion(body, [body.random_pose(k).q for k in range(20)], 24.0)


def size_of(skeleton):
    """Return the largest distance between two joints at rest."""
    places = np.array(skeleton.rest_pose().positions)
    return float(np.linalg.norm(places[:, None] - places[None], axis=-1).max())


def compared(motion, names, places):
    """Return (joints compared, largest distance relative to the body's size) of what another program has read."""
    own, rows, columns = motion.positions(), [], []
    for column, name in enumerate(names):
        if names.count(name) == 1 and (found := row_of(motion.skeleton, name)) is not None:
            rows.append(found)
            columns.append(column)
    if len(places) != len(own) or not rows:
        return len(rows), float("inf")
    off = np.linalg.norm(places[:, columns] - own[:, rows], axis=-1)
    return len(rows), float(off.max()) / size_of(motion.skeleton)


def row_of(skeleton, name):
    """Return the row of a name in a BVH file: a joint, or the last of the hinges that share a body."""
    try:
        return skeleton.index(name)
    except sy.SynoviaError:
        return None


def bvh_rows(data, readers, folder):
    """Write every clip as BVH and have it read; return rows of the table."""
    rows = []
    for name, motion in clips(data):
        path = folder / "clip.bvh"
        sy.save_motion(motion, path, force=True)
        row = {"clip": name, "frames": len(motion), "joints": len(motion.skeleton), "synovia": None}
        again = sy.load_motion(path)
        row["synovia"] = compared(motion, list(again.skeleton.joint_names), again.positions())
        for reader, python in readers.items():
            out = folder / "read.npz"
            ran = subprocess.run(
                [python, HERE / "readers.py", reader, path, out], capture_output=True, text=True, check=False
            )
            if ran.returncode:
                row[reader] = (0, float("nan"))
                print(f"{reader} on {name}: {ran.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
                continue
            with np.load(out) as read:
                row[reader] = compared(motion, read["names"].tolist(), read["places"])
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    return rows


def written_gltf(data, folder):
    """Write retargeted and own clips into copies of all glTF files; yield (file, motion)."""
    walk = sy.load_motion(data / "motion" / "cmu_07_01_walk.bvh")
    jacks = sy.load_motion(data / "motion" / "cmu_jumping_jacks.bvh")
    for name in ("mannequiny.glb", "greenman.glb"):
        into = data / "character" / name
        for clip in (walk, jacks):
            try:
                motion = sy.retarget(clip, sy.load_skeleton(into)).motion
            except sy.SynoviaError as error:
                print(f"{clip.name} on {name}: {error}", file=sys.stderr)
                continue
            path = folder / f"{into.stem}_{clip.name.replace('.', '_')}.glb"
            sy.save_motion(motion, path, into=into)
            yield path, motion
        for k, motion in enumerate(load_motions(into)[:3]):
            yield once_more(motion, folder / f"{into.stem}_own{k}.glb", into)
    into = data / "character" / "SimpleSkin.gltf"
    motion = load_motions(into)[0]
    for ending in ("gltf", "glb"):
        yield once_more(motion, folder / f"SimpleSkin.{ending}", into)


def once_more(motion, path, into):
    """Write a file's own clip into a copy of it under another name; return path and motion."""
    again = sy.Motion(motion.skeleton, motion.q, motion.fps, name=f"{motion.name} again", stretch=motion.stretch)
    sy.save_motion(again, path, into=into)
    return path, again


def validated(node, path):
    """Return (errors, warnings, messages) of the Khronos validator."""
    ran = subprocess.run(["node", HERE / "validate.mjs", node, path], capture_output=True, text=True, check=True)
    report = json.loads(ran.stdout)
    issues = report["issues"]
    return issues["numErrors"], issues["numWarnings"], sorted({m["code"] for m in issues["messages"]})


@contextmanager
def served(*folders):
    """Serve files of the first folder that has them; yield the address."""

    class Handler(SimpleHTTPRequestHandler):
        def translate_path(self, path):
            inside = [Path(super().translate_path(path)).relative_to(Path.cwd())]
            return str(next((at for f in folders if (at := Path(f) / inside[0]).exists()), inside[0]))

        def log_message(self, *arguments):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(Path.cwd())))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def shown(browser, address, path, motion, pictures):
    """Show a clip at two times in the browser; return (nodes, largest distance, whether it moves as it should).

    Nodes of the file are rows of the skeleton, after a free root that was put before it. A clip that scales joints as
    it goes, which no skeleton of rigid joints does, is compared with what the browser makes of the file's own clip.
    """
    scene = read_scene(read_document(path))
    extra = len(motion.skeleton) - len(scene.names)
    positions = motion.positions()
    size = size_of(motion.skeleton)
    page = browser.new_page(viewport={"width": 640, "height": 480})
    trouble = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(f"{address}/page.html")
    page.wait_for_function("window.loaded", timeout=60_000)
    own = motion.name.removesuffix(" again") if motion.stretch is not None else None
    page.evaluate("([file, clip, own]) => ready(file, clip, own)", [path.name, motion.name, own])
    worst, count, images = 0.0, 0, []
    shown_frames = len(motion) // 4, (2 * len(motion)) // 3
    for number, frame in enumerate(shown_frames):
        middle = [float(v) for v in positions[frame].mean(0)]
        time = frame / motion.fps
        expected = {node: positions[frame, row + extra] for node, row in scene.row_of.items()}
        if own is not None:
            answer = page.evaluate("([t, m, s, own]) => show(t, m, s, own)", [time, middle, size, True])
            expected = {node: np.array(place) for node, *place in answer}
        answer = page.evaluate("([t, m, s, own]) => show(t, m, s, own)", [time, middle, size, False])
        for node, *place in answer:
            if node in expected and node in scene.row_of:
                count += 1
                worst = max(worst, float(np.linalg.norm(place - expected[node])) / size)
        images.append(page.screenshot(path=pictures / f"{path.stem}_{path.suffix[1:]}_{number}.png"))
    way = np.linalg.norm(positions[shown_frames[1]] - positions[shown_frames[0]], axis=-1).max() / size
    as_it_should = images[0] != images[1] or bool(way < 0.01)  # some clips hardly move
    page.close()
    if trouble:
        raise SystemExit(f"{path.name}: {trouble[0]}")
    return count // 2, worst, as_it_should


def gltf_rows(data, node, folder, pictures):
    """Write clips into glTF files, have them validated and shown; return rows of the table."""
    from playwright.sync_api import sync_playwright

    rows = []
    with served(HERE, folder, node) as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path(), args=FLAGS)
        for path, motion in written_gltf(data, folder):
            errors, warnings, codes = validated(node, path)
            nodes, worst, moved = shown(browser, address, path, motion, pictures)
            rows.append({
                "file": path.name, "frames": len(motion), "errors": errors, "warnings": warnings, "codes": codes,
                "nodes": nodes, "off": worst, "moved": moved, "scaled": motion.stretch is not None,
            })  # fmt: skip
            print(rows[-1], file=sys.stderr, flush=True)
        browser.close()
    return rows


def new_rows(data, node, folder):
    """Write clips into new glTF files, have them validated and played by three.js; return rows of the table."""
    from synovia.io.gltf.fresh import file_frame

    rows = []
    robots = [data / "robot" / name for name in ("panda.urdf", "so100.urdf", "robotiq_arg2f_85_model.urdf")]
    shaped = sy.with_shapes(sy.load_skeleton(data / "motion" / "cmu_07_01_walk.bvh"))
    bodies = [shaped, *(sy.load_skeleton(path) for path in robots)]
    made = [(body.name, sy.Motion(body, [body.random_pose(k).q for k in range(20)], 24.0)) for body in bodies]
    for name, motion in [*clips(data), *made]:
        if name == "quadruped" or motion.skeleton.source.suffix in (".glb", ".gltf"):
            continue  # written into copies
        path = folder / f"new_{len(rows)}.glb"
        sy.save_motion(motion, path)
        errors, warnings, codes = validated(node, path)
        frames = np.unique(np.linspace(0, len(motion) - 1, 20).astype(int))
        ran = subprocess.run(
            ["node", HERE / "places.mjs", node, path, json.dumps((frames / motion.fps).tolist()),
             json.dumps(list(motion.skeleton.joint_names))],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        frame = file_frame(motion.skeleton)
        own = motion.positions()[frames] @ frame[:3, :3].T
        off = np.linalg.norm(np.array(json.loads(ran.stdout)) - own, axis=-1).max()
        size = size_of(motion.skeleton) * np.cbrt(np.linalg.det(frame[:3, :3]))
        rows.append({
            "file": name, "frames": len(motion), "joints": len(motion.skeleton), "errors": errors,
            "warnings": warnings, "codes": codes, "off": float(off / size),
        })  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def main():
    """Write, have read, compare, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readers", help="interpreter with bvhio and upc-pymotion")
    parser.add_argument("--blender", help="interpreter with bpy")
    parser.add_argument("--node", type=Path, help="folder with node_modules")
    parser.add_argument("--no-browser", action="store_true", help="the validator and three.js without a browser alone")
    parser.add_argument("--pictures", type=Path, help="where screenshots go; nowhere without")
    options = parser.parse_args()
    where, data = machine(), needed_data()
    readers = {name: options.blender if name == "blender" else options.readers for name in READERS}
    readers = {name: python for name, python in readers.items() if python}
    text, bars, result = [], [], {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if readers:
            rows = result["bvh"] = bvh_rows(data, readers, folder)
            head = ["BVH of", "frames", "joints", *["synovia", *readers]]
            text.append(table(head, [
                [row["clip"], row["frames"], row["joints"], *(f"{row[r][1]:.1e} ({row[r][0]})" for r in head[3:])]
                for row in rows
            ]))  # fmt: skip
            for reader in readers:
                held = [row for row in rows if row[reader][1] <= CLOSE]
                bars.append((f"{reader}: {len(held)} of {len(rows)} clips within {CLOSE:g}", len(held) == len(rows)))
        if options.node:
            rows = result["new"] = new_rows(data, options.node, folder)
            head = ["new glTF of", "frames", "joints", "errors", "warnings", "off in three.js"]
            text.append(table(head, [
                [row["file"], row["frames"], row["joints"], row["errors"], row["warnings"], f"{row['off']:.1e}"]
                for row in rows
            ]))  # fmt: skip
            bars.append(("new glTF: no error in the validator", not any(row["errors"] for row in rows)))
            bars.append((f"new glTF in three.js within {CLOSE:g}", all(r["off"] <= CLOSE for r in rows)))
        if options.node and not options.no_browser:
            pictures = options.pictures or folder
            pictures.mkdir(parents=True, exist_ok=True)
            rows = result["gltf"] = gltf_rows(data, options.node, folder, pictures)
            head = ["glTF", "frames", "errors", "warnings", "nodes in the browser", "off", "picture moves as it should"]
            text.append(table(head, [
                [row["file"], row["frames"], row["errors"], row["warnings"], row["nodes"], f"{row['off']:.1e}",
                 row["moved"]] for row in rows
            ]))  # fmt: skip
            bars.append(("glTF validator: no error", not any(row["errors"] for row in rows)))
            bars.append((f"browser within {CLOSE:g}, moving", all(r["moved"] and r["off"] <= CLOSE for r in rows)))
    sys.argv = ["files/run.py", "--readers", "...", "--blender", "...", "--node", "..."]
    lines, held = verdicts(bars)
    save("files", "Files in other programs", result, "\n\n".join([*text, lines]), where)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
