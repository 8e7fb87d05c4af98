"""A report: what a result says of itself, as a text and as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Self, cast

import numpy as np


class Report(str):
    """What a result says of itself: a text for people, and the same facts as plain values.

    Args:
        lines: Lines of the text.
        facts: The facts by name, as in ``--json``: numbers, texts, lists and dictionaries.

    Example:
        >>> import synovia as sy
        >>> body = sy.bundled("humanoid")
        >>> report = sy.judge(sy.Motion(body, [body.rest_q] * 20, 30.0)).report()
        >>> print(report.splitlines()[0])
        verdict: good
        >>> report.to_object()["verdict"]
        'good'
    """

    __slots__ = ("facts",)

    facts: Mapping[str, Any]

    def __new__(cls, lines: Iterable[str], facts: Mapping[str, Any]) -> Self:
        """Join the lines."""
        out = super().__new__(cls, "\n".join(lines))
        out.facts = dict(facts)
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by text and facts."""
        return type(self), ([str(self)], self.facts)

    def to_object(self) -> dict[str, Any]:
        """Return the facts as in ``--json``."""
        return dict(self.facts)


def plain(value: Any, *names: str) -> Any:
    """Return a value as JSON values: arrays and tuples as lists, objects as the dictionary of their fields.

    Args:
        value: The value.
        names: Attributes of an object to take; none for all its fields.
    """
    if names:
        return {name: plain(getattr(value, name)) for name in names}
    if hasattr(value, "to_object"):
        return value.to_object()
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return cast("Any", value).tolist()
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(one) for one in cast("Sequence[Any]", value)]
    return value
