"""Draw retargeted clips beside their sources at six moments, for people to look at.

    python benchmarks/retarget_pictures.py [--only NAME ...] [--to FOLDER]

The upper row of each picture is the source, the lower row the result, at the same moments and from the same side. Only
clips and bodies whose licences permit pictures are drawn: CMU's recordings, clips under the MIT licence, the
made-up walk of ``examples``, the bundled body, GDQuest's Mannequiny (CC BY 4.0) and Unitree's G1 (BSD-3). The
directions of all other clips are measured by ``retarget_directions.py``.
"""

import argparse
import tempfile
from io import BytesIO
from pathlib import Path

import numpy as np
from common import needed_data
from PIL import Image, ImageDraw, ImageFont

import synovia as sy
from synovia.model.anatomy.up import find_up

PAIRS = {
    "walk_g1": ("examples/walk.bvh", "robot/g1_29dof.urdf"),
    "cmu_walk_humanoid": ("motion/cmu_07_01_walk.bvh", "humanoid"),
    "cmu_walk_g1": ("motion/cmu_07_01_walk.bvh", "robot/g1_29dof.urdf"),
    "jumping_jacks_mannequiny": ("motion/cmu_jumping_jacks.bvh", "character/mannequiny.glb"),
    "jumping_jacks_g1": ("motion/cmu_jumping_jacks.bvh", "robot/g1_29dof.urdf"),
    "figure_eight_mannequiny": ("motion/pymo_8walk.bvh", "character/mannequiny.glb"),
    "walk01_humanoid": ("motion/bvhtoolbox_walk01.bvh", "humanoid"),
    "wave_g1": ("motion/fair_wave_hello.bvh", "robot/g1_29dof.urdf", (150, 15)),
    "dance_mannequiny": ("motion/rokoko_jesse_dance.bvh", "character/mannequiny.glb"),
    "dance_g1": ("motion/rokoko_jesse_dance.bvh", "robot/g1_29dof.urdf"),
}
MOMENTS = 6
CELL = 190, 230  # pixels
SCALE = 2  # drawn larger, then reduced
ROOT = Path(__file__).parents[1]
PLACES = ROOT / "docs" / "pictures" / "retarget"


def main():
    """Draw the pictures and print the verdict on each clip."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(PAIRS), choices=list(PAIRS), help="pictures to draw")
    parser.add_argument("--to", type=Path, default=PLACES, help="folder")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    data = needed_data()
    for name in options.only:
        clip, body, *view = PAIRS[name]
        source = sy.load_motion(ROOT / clip if clip.startswith("examples") else data / clip)
        target = sy.bundled(body) if body == "humanoid" else sy.load_skeleton(data / body)
        answer = sy.retarget(source, target)
        path = options.to / f"{name}.webp"
        picture([source, answer.motion], path, *view)
        limbs = [np.degrees(limb.mean) for limb in answer.judgement.figures.limbs if "foot" not in limb.limb]
        print(f"{name}: {answer.verdict}, {np.mean(limbs):.1f}° off, {path.stat().st_size / 1024:.0f} kB")
        for finding in answer.judgement.warnings:
            print(f"  {finding}")


def picture(clips, path, view="three-quarter"):
    """Draw clips below each other at the same moments, the first and the last frame left out."""
    chosen = np.linspace(0, len(clips[0]) - 1, MOMENTS + 2)[1:-1].round().astype(int)
    sheet = Image.new("RGB", (MOMENTS * CELL[0], len(clips) * CELL[1]))
    draw = ImageDraw.Draw(sheet)
    for row, clip in enumerate(clips):
        for k, image in enumerate(stills(clip, chosen, view)):
            at = k * CELL[0], row * CELL[1]
            sheet.paste(image, at)
            if row == 0:
                font = ImageFont.load_default(13)
                draw.text((at[0] + 8, at[1] + 6), f"{chosen[k] / clip.fps:.1f} s", fill=(110, 120, 135), font=font)
    out = BytesIO()
    sheet.save(out, "WEBP", quality=80, method=6)
    path.write_bytes(out.getvalue())


def stills(clip, chosen, view):
    """Draw some frames of a clip with one scale."""
    robot = all(joint.kind is not sy.Kind.BALL for joint in clip.skeleton.joints)
    look = "bones" if robot else "surface"  # G1 comes without its meshes
    part = centred(sy.Motion(clip.skeleton, clip.q[chosen], 1.0, name=clip.name))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sheet.png"
        sy.render(part, path, size=(SCALE * CELL[0], SCALE * CELL[1]), captions=False, look=look, view=view)
        sheet = Image.open(path).convert("RGB")
    width, height = SCALE * CELL[0], SCALE * CELL[1]
    across = sheet.width // width
    for k in range(len(chosen)):
        x, y = k % across * width, k // across * height
        yield sheet.crop((x, y, x + width, y + height)).resize(CELL, Image.Resampling.LANCZOS)


def centred(motion):
    """Return a clip that stays at one place: the camera need not follow it."""
    skeleton, up = motion.skeleton, "xyz".index(find_up(motion.skeleton).name[-1])
    row = next(row for row, joint in enumerate(skeleton.joints) if joint.kind is sy.Kind.FREE)
    above = skeleton.parents[row]
    turn = np.array(skeleton.rest_pose().frames)[above, :9].reshape(3, 3) if above >= 0 else np.eye(3)
    shift = -motion.positions().mean(1)
    shift[:, up] = 0.0
    q, at = motion.q.copy(), skeleton.q_slice(row).start
    q[:, at : at + 3] += shift @ turn @ skeleton.joints[row].rest[:3, :3]
    return sy.Motion(skeleton, q, motion.fps, name=motion.name)


if __name__ == "__main__":
    main()
