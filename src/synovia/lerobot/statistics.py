"""Statistics of columns as LeRobot stores them: of each episode, and of all frames, combined from the episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Summary = dict[str, NDArray[Any]]
_QUANTILES: Final = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}


def of_episode(values: NDArray[Any]) -> Summary:
    """Return the statistics of the frames of an episode.

    Args:
        values: The values, (frames, values per frame).
    """
    exact = values.astype(np.float64)
    quantiles = np.quantile(exact, list(_QUANTILES.values()), axis=0)
    return {
        "min": exact.min(axis=0),
        "max": exact.max(axis=0),
        "mean": exact.mean(axis=0),
        "std": exact.std(axis=0),
        "count": np.array([len(values)]),
        **dict(zip(_QUANTILES, quantiles, strict=True)),
    }


def of_all(parts: Sequence[Summary]) -> Summary:
    """Return the statistics of all frames.

    Quantiles are means of the episodes' quantiles weighted by frames, as in LeRobot; all other statistics are exact.
    """
    if not parts:
        return {}
    counts = np.array([part["count"][0] for part in parts], np.float64)[:, None]
    total = counts.sum()

    def mean(key: str) -> NDArray[Any]:
        return (np.stack([part[key] for part in parts]) * counts).sum(axis=0) / total

    center = mean("mean")
    spread = np.stack([part["std"] ** 2 + (part["mean"] - center) ** 2 for part in parts])
    return {
        "min": np.min([part["min"] for part in parts], axis=0),
        "max": np.max([part["max"] for part in parts], axis=0),
        "mean": center,
        "std": np.sqrt((spread * counts).sum(axis=0) / total),
        "count": np.array([int(total)]),
        **{key: mean(key) for key in _QUANTILES},
    }
