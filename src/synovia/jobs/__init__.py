"""Jobs: the commands of the command line as classes.

    import synovia as sy

    retarget = sy.jobs.Retarget("robot.xml", hold_feet=False)
    outcome = retarget("walk.bvh", "walk.npz")  # one clip: outcome.report(), outcome.figures, outcome.code
    run = retarget.run("clips", "out", format="npz")  # a folder: a process for each core, and a ledger

The fields of a class are the options of its command. A file in ``verbs`` describes a command with its jobs.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synovia.jobs.base import Host, Outcome, UsageError
    from synovia.jobs.clips import ClipReader
    from synovia.jobs.hand import RetargetHand
    from synovia.jobs.job import Job, Running, Verb
    from synovia.jobs.verbs.animate import Fit, Follow, HoldFeet
    from synovia.jobs.verbs.convert import Convert
    from synovia.jobs.verbs.edit import Edit
    from synovia.jobs.verbs.render import Render
    from synovia.jobs.verbs.retarget import Retarget
    from synovia.jobs.verbs.solve import Solve, SolvePose

_HOMES = {
    "Host": "base", "Job": "job", "Outcome": "base", "UsageError": "base", "ClipReader": "clips", "Running": "job",
}  # fmt: skip

__all__ = [
    "ClipReader", "Convert", "Edit", "Fit", "Follow", "HoldFeet", "Host", "Job", "Outcome", "Render", "Retarget",
    "RetargetHand", "Running", "Solve", "SolvePose", "UsageError",
]  # fmt: skip


def verb_names() -> list[str]:
    """Return the names of the commands described in ``verbs``, in alphabetical order."""
    from synovia.jobs import verbs

    return sorted(module.name for module in iter_modules(verbs.__path__))


def verb(name: str) -> Verb:
    """Return the description of a command."""
    return import_module(f"synovia.jobs.verbs.{name}").VERB


def __getattr__(name: str) -> Any:
    """Import a name when it is first used; job classes are searched in ``verbs``."""
    if name in _HOMES:
        return getattr(import_module(f"synovia.jobs.{_HOMES[name]}"), name)
    if name[:1].isupper():
        for one in verb_names():
            for job in verb(one).jobs:
                if job.__name__ == name:
                    return job
    raise AttributeError(f"module 'synovia.jobs' has no attribute {name!r}")
