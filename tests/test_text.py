"""Counts with their nouns and verbs, in messages too."""

import tracemalloc
from pathlib import Path

import pytest

import synovia as sy
from cli_runs import assert_refused, run
from synovia.errors import FormatError
from synovia.text import counted, parse_toml, short_names


@pytest.mark.parametrize(
    ("count", "more", "text"),
    [
        (1, {}, "1 input"),
        (0, {}, "0 inputs"),
        (2, {"verb": ("is", "are")}, "2 inputs are"),
        (1, {"verb": ("is", "are"), "plural": "boxes"}, "1 input is"),
        (3, {"plural": "boxes"}, "3 boxes"),
    ],
)
def test_counts_have_the_right_noun_and_verb(count: int, more: dict[str, object], text: str) -> None:
    assert counted(count, "input", **more) == text


@pytest.mark.parametrize("count", [1, 2])
def test_a_run_says_how_many_outputs_are_in_the_way(tmp_path: Path, count: int) -> None:
    body = sy.Skeleton.chain([(0, 0, 0), (0, 1, 0)])
    motion = sy.Motion(body, [body.rest_pose().q] * 2, 30.0)
    for k in range(2):
        sy.save_motion(motion, tmp_path / f"clip{k}.bvh")
    out = tmp_path / "out"
    out.mkdir()
    for k in range(count):
        (out / f"clip{k}.npz").write_bytes(b"mine")
    ran = run("convert", tmp_path / "clip0.bvh", tmp_path / "clip1.bvh", "-o", out, "--format", "npz")
    assert_refused(ran, "1 output exists without" if count == 1 else "2 outputs exist without")


@pytest.mark.parametrize("text", ['a = ["' + "e" * 2**19, "[a]\n" + '"' + "\\\\" * 2**18, "a = {b = '" + "e" * 2**19])
def test_texts_without_an_end_take_no_memory(text):
    tracemalloc.start()
    with pytest.raises(FormatError, match="is not TOML"):
        parse_toml(text, "a.toml")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 16 << 20


@pytest.mark.parametrize("line", ["[a{}]\n", "a{} = {{ b = 0 }}\n", "[[a{}]]\n"])
def test_a_toml_text_has_as_many_tables_as_its_size_allows(line):
    parse_toml("".join(line.format(k) for k in range(500)), "a.toml")
    with pytest.raises(FormatError, match="too many tables: expected at most"):
        parse_toml("".join(line.format(k) for k in range(60_000)), "a.toml")
    rows = "frames = [\n" + "    [0],\n" * 60_000 + "]\n"
    assert len(parse_toml(rows, "a.toml")["frames"]) == 60_000


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["mixamorig:Hips", "mixamorig:LeftArm", "mixamorig:Head", "mixamorig:Neck"], "Hips LeftArm Head Neck"),
        (["root", *(f"Bip01 {part}" for part in "abcdef")], "root a b c d e f"),
        (["left_hand", "left_thumb", "left_index", "left_palm"], "left_hand left_thumb left_index left_palm"),
        (["left_hand", "right_hand", "head", "hips"], "left_hand right_hand head hips"),
        (["a:x", "a:y", "a:z", "x"], "a:x a:y a:z x"),  # too few
        (["a:x", "a:y", "a:z", "a:v", "x"], "a:x a:y a:z a:v x"),  # x would have two meanings
        (["a:", "a:", "a:", "a:", "a:"], "a: a: a: a: a:"),
        ([], ""),
    ],
)
def test_short_names_leave_out_the_word_that_nearly_all_share(names, short):
    assert " ".join(short_names(names)) == short
