# Short names for what CONTRIBUTING.md describes.

_default:
    @just --list

# Everything that CI runs, or only the steps named
check *STEPS:
    .ci/run {{ STEPS }}

# The tests, with pytest's own arguments
test *ARGS:
    .venv/bin/pytest {{ ARGS }}

# Format, and mend what ruff can mend
fix:
    .venv/bin/ruff format
    .venv/bin/ruff check --fix

# Which of 400 random one-token changes of kernels, readers and writers do tests notice?
mutants *ARGS:
    .venv/bin/python benchmarks/mutants.py {{ ARGS }}

# Is NEW slower than OLD? Checkouts or git revisions: just against HEAD~5 .
against OLD NEW *ARGS:
    .venv/bin/python benchmarks/against.py {{ OLD }} {{ NEW }} {{ ARGS }}

# A corpus of answers, and what got worse: just corpus make OUT.npz; just corpus compare OLD.npz NEW.npz
corpus *ARGS:
    .venv/bin/python benchmarks/corpus.py {{ ARGS }}
