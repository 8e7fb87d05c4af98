# Short names for what CONTRIBUTING.md describes.

_default:
    @just --list

# Everything that CI runs, or only the steps named
check *STEPS:
    .ci/run {{ STEPS }}

# The tests, with pytest's own arguments
test *ARGS:
    .venv/bin/pytest {{ ARGS }}

# Every file of the package, or of one folder of it, with its first line, which says what it is
files FOLDER=".":
    @grep -rHm1 '"""' src/synovia/{{ FOLDER }} --include='*.py' | sort

# Compile all kernels ahead, for clones and for platform wheels: --levels x86_64_v3
kernels *ARGS:
    .venv/bin/python packaging/kernels.py {{ ARGS }}

# The documentation site, into OUT, with warnings as errors and links checked; its own environment in .ci/docs
docs OUT=".ci/site":
    OUT={{ OUT }} .ci/run docs

# Both wheels: pure Python, and for this platform with compiled kernels
wheel: kernels
    uv build --wheel --out-dir dist
    SYNOVIA_WHEEL=platform uv build --wheel --out-dir dist

# Damaged files of every format, each within a second and 512 MiB: --cases 1000000 for all
fuzz *ARGS:
    .venv/bin/python tests/fuzzing/run.py {{ ARGS }}

# Format, and mend what ruff can mend
fix:
    .venv/bin/ruff format
    .venv/bin/ruff check --fix

# The tests of CI, with pytest's own arguments: also those that the plain command leaves out
test-all *ARGS:
    .venv/bin/pytest -m "not nightly" {{ ARGS }}

# Kernels, problems and solvers compiled for every kind of processor that this machine can run; slow tests too
processors:
    PROCESSORS=all .ci/run processors

# What is too long for CI: hours on two cores. Every part runs, whatever happened to those before it
nightly:
    #!/usr/bin/env bash
    set -u
    python=.venv/bin/python failed=()
    data=bundled; [ ! -d "${SYNOVIA_DATA:-../shared/data}" ] || data=all
    night=$(date +%Y%m%d) # other problems every night; the name of a failure brings them back
    part() { printf '\n== %s\n' "$*"; "$@" || failed+=("$*"); }
    # all tests, once with coverage; every level of the instruction set; kernels as plain Python; the plain wheel at length
    part env PROCESSORS=all .ci/run --night tests jit interpreted processors plain
    # the README's commands: compiled in place as on a new machine, compiled ahead, and with the shared data
    part env FORM=compiled .ci/run readme
    part env FORM=ahead .ci/run readme
    part env FORM=data .ci/run readme
    part .ci/run soak
    part "$python" benchmarks/soak.py --solves 1000000 --seed "$night" --models "$data"
    part "$python" benchmarks/soak.py --solves 1000000 --seed "$night" --models "$data" --wide
    part "$python" benchmarks/interrupt.py 10000
    part "$python" benchmarks/interrupt.py solves 1000
    part just fuzz --cases 1000000 --seed "$night"
    part just mutants
    part just misses
    [ ${#failed[@]} = 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }

# Which of 400 random one-token changes of kernels, readers and writers do tests notice?
mutants *ARGS:
    .venv/bin/python benchmarks/mutants.py {{ ARGS }}

# How good are the poses of misses, beside the best of 25 random starts?
misses *ARGS:
    .venv/bin/python benchmarks/misses.py --count 1000 {{ ARGS }}

# Is NEW slower than OLD? Checkouts or git revisions: just against HEAD~5 .
against OLD NEW *ARGS:
    .venv/bin/python benchmarks/against.py {{ OLD }} {{ NEW }} {{ ARGS }}

# The surfaces and shapes of the bundled models, made anew: just bodies [NAME ...] [--shapes]
bodies *ARGS:
    .venv/bin/python packaging/bodies {{ ARGS }}

# A corpus of answers, and what got worse: just corpus make OUT.npz; just corpus compare OLD.npz NEW.npz
corpus *ARGS:
    .venv/bin/python benchmarks/corpus.py {{ ARGS }}
