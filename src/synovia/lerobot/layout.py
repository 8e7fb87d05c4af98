"""The files of a LeRobot data set, layout v3.0: read file by file, and written with additional columns.

data/chunk-*/file-*.parquet           frames; each episode is completely in one file
meta/info.json                        name, type and shape of each column, and counts
meta/stats.json                       statistics of each column
meta/episodes/chunk-*/file-*.parquet  a row per episode, with the statistics of its columns
other files (tasks, videos)           copied
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from synovia.errors import FileError, FormatError, InputError, did_you_mean
from synovia.io.base import as_path, optional_package, read_text
from synovia.text import parse_json

Summary = dict[str, NDArray[Any]]
_QUANTILES: Final = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
_VERSION: Final = "v3."
_INFO: Final = Path("meta/info.json")
_STATS: Final = Path("meta/stats.json")
_LEVELS: Final = 50  # largest nesting depth of JSON; LeRobot's indentation makes deeper files much larger
_EPISODES: Final = Path("meta/episodes")
_DATA: Final = Path("data")
_EPISODE: Final = "episode_index"

Numbers = NDArray[Any]
Make = Callable[[int, Mapping[str, Numbers]], Mapping[str, Numbers]]
"""Makes the new columns of an episode: make(episode, its columns named in ``NewColumns.needed``)."""


class Feature(NamedTuple):
    """A column of numbers.

    Args:
        dtype: NumPy type name of its values.
        names: Name of each value in a frame; None for a column with one unnamed value per frame.
    """

    dtype: str
    names: tuple[str, ...] | None

    @property
    def size(self) -> int:
        """Number of values per frame."""
        return 1 if self.names is None else len(self.names)


class NewColumns(NamedTuple):
    """Columns to add to a copy of a data set.

    Args:
        features: The new columns by name.
        needed: Existing columns from which the new columns are computed.
        make: Computes the new columns of one episode.
    """

    features: Mapping[str, Feature]
    needed: tuple[str, ...]
    make: Make


class DataSet:
    """A data set in a folder.

    Args:
        root: The folder.

    Raises:
        FileError: If ``meta/info.json`` is missing or cannot be read.
        FormatError: If the data set has another version of the layout, or is damaged.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Read the description of the columns."""
        self.root = as_path(root)
        where = self.root / _INFO
        info = _json(where)
        version, features, fps = info.get("codebase_version"), info.get("features"), info.get("fps")
        if not str(version).startswith(_VERSION):
            raise FormatError(
                "data set has another layout",
                where=str(where),
                value=version,
                expected="v3.0",
                hint="LeRobot converts older ones with its script convert_dataset_v21_to_v30",
            )
        if not isinstance(features, dict) or not isinstance(fps, (int, float)) or not 0 < fps <= sys.float_info.max:
            raise FormatError("features or fps are missing", where=str(where), expected="both in meta/info.json")
        for name, feature in cast("dict[str, object]", features).items():
            if not isinstance(feature, dict):
                raise FormatError(
                    f"feature {name!r}",
                    where=str(where),
                    value=feature,
                    expected="an object with dtype, shape and names",
                )
        self.info = info
        self.features = cast("dict[str, dict[str, Any]]", features)
        self.fps = float(fps)

    def feature(self, name: str) -> Feature:
        """Return a column of named values.

        Raises:
            InputError: If the column does not exist, or its values have no names.
        """
        if name not in self.features:
            raise InputError(f"no column {name!r}", where=str(self.root), hint=did_you_mean(name, list(self.features)))
        feature = self.features[name]
        names: Any = feature.get("names")
        if isinstance(names, dict):  # older recordings: {"motors": [...]}
            inner = list(cast("dict[str, Any]", names).values())
            names = inner[0] if len(inner) == 1 else None
        shape = feature.get("shape")
        if not isinstance(names, list) or shape != [len(cast("list[Any]", names))]:
            raise InputError(
                f"column {name!r} has no names for its numbers",
                where=str(self.root),
                value=feature.get("names"),
                expected="a name for each",
            )
        return Feature(str(feature.get("dtype")), tuple(map(str, cast("list[Any]", names))))

    def files(self) -> list[Path]:
        """Return the files of frames in order.

        Raises:
            FileError: If there are no files of frames.
        """
        found = sorted((self.root / _DATA).glob("*/*.parquet"))
        if not found:
            raise FileError(
                "data set has no frames", where=str(self.root / _DATA), expected="chunk-000/file-000.parquet"
            )
        return found

    def write_with(
        self,
        target: str | os.PathLike[str],
        new: NewColumns,
        *,
        replace: bool = False,
        force: bool = False,
    ) -> None:
        """Write a copy of the data set with new columns; only one file of frames is in memory at a time.

        Args:
            target: Folder of the copy.
            new: The new columns.
            replace: Whether existing columns with these names may be replaced.
            force: Whether an existing folder may be replaced.

        Raises:
            FileError: If the folder exists and ``force`` is not set, or a file cannot be read or written.
            FormatError: If the files do not fit the layout.
            InputError: If a column with one of these names exists and ``replace`` is not set.
            MissingExtraError: If pyarrow is not installed.
        """
        parquet = optional_package("pyarrow.parquet", "data sets of LeRobot need pyarrow", "data")
        place = as_path(target)
        taken = [name for name in new.features if name in self.features]
        if taken and not replace:
            raise InputError(
                f"data set has a column {taken[0]!r} already",
                where=str(self.root),
                hint="pass replace=True, or another name",
            )
        if place.exists() and not force:
            raise FileError("folder exists", where=str(place), hint="pass force=True to replace it")
        if place.resolve() == self.root.resolve() or self.root.resolve() in place.resolve().parents:
            raise FileError("folder is the data set itself, or inside it", where=str(place), hint="choose another")
        building = place.parent / f".{place.name}.{secrets.token_hex(4)}"
        try:
            shutil.copytree(self.root, building, ignore=self._rewritten)
            summaries: dict[int, dict[str, Summary]] = {}
            for file in self.files():
                self._write_frames(parquet, file, building, new, summaries)
            self._write_meta(parquet, building, new.features, summaries)
            _put(building, place)
        except OSError as error:
            raise FileError(
                f"data set cannot be copied ({error.strerror or error})", where=str(error.filename or place)
            ) from error
        finally:
            shutil.rmtree(building, ignore_errors=True)

    def _rewritten(self, folder: str, names: list[str]) -> set[str]:
        """Return the files of a folder that ``write_with`` rewrites, so that they are not copied."""
        own = {self.root / _INFO, self.root / _STATS, *self.files(), *self._episodes()}
        return {name for name in names if Path(folder) / name in own}

    def _episodes(self) -> list[Path]:
        """Return the files that list the episodes."""
        return sorted((self.root / _EPISODES).glob("*/*.parquet"))

    def _write_frames(
        self,
        parquet: Any,
        file: Path,
        building: Path,
        new: NewColumns,
        summaries: dict[int, dict[str, Summary]],
    ) -> None:
        """Write a file of frames with the new columns, a row group per episode; add statistics to ``summaries``."""
        table = _read_table(parquet, file)
        columns = {name: _numbers(table, name, file) for name in (*new.needed, _EPISODE)}
        made: dict[str, list[Numbers]] = {name: [] for name in new.features}
        spans = list(_spans(columns[_EPISODE][:, 0]))
        for episode, span in spans:
            if episode in summaries:
                raise FormatError(
                    f"episode {episode} is split", where=str(file), expected="consecutive rows of one file"
                )
            done = new.make(episode, {name: columns[name][span] for name in new.needed})
            for name, feature in new.features.items():
                made[name].append(done[name].astype(feature.dtype))
            summaries[episode] = {name: of_episode(made[name][-1]) for name in new.features}
        for name, feature in new.features.items():
            values = np.concatenate(made[name]) if spans else np.zeros((0, feature.size), feature.dtype)
            table = _with_column(table, name, values, feature, listed=_is_list(table, new.needed[0]))
        out = building / file.relative_to(self.root)
        with parquet.ParquetWriter(out, table.schema, compression="snappy", use_dictionary=True) as writer:
            for _, span in spans:
                writer.write_table(table.slice(span.start, span.stop - span.start))

    def _write_meta(
        self, parquet: Any, building: Path, new: Mapping[str, Feature], summaries: dict[int, dict[str, Summary]]
    ) -> None:
        """Write the description of the columns, and the statistics of all frames and of each episode."""
        features = dict(self.features)
        for name, feature in new.items():
            features[name] = {
                "dtype": feature.dtype,
                "shape": [feature.size],
                "names": None if feature.names is None else list(feature.names),
            }
        _write_json(building / _INFO, self.info | {"features": features})
        stats = _json(self.root / _STATS) if (self.root / _STATS).exists() else {}
        for name in new:
            total = of_all([summary[name] for summary in summaries.values()])
            stats[name] = {key: value.tolist() for key, value in total.items()}
        _write_json(building / _STATS, stats)
        for file in self._episodes():
            table = _read_table(parquet, file)
            episodes = [int(number) for number in _numbers(table, _EPISODE, file)[:, 0]]
            lost = next((episode for episode in episodes if episode not in summaries), None)
            if lost is not None:
                raise FormatError(f"episode {lost} has no frames", where=str(file))
            for name in new:
                old = [at for at in table.column_names if at.startswith(f"stats/{name}/")]
                table = table.drop_columns(old)
                for key in summaries[episodes[0]][name] if episodes else ():
                    values = [summaries[episode][name][key].tolist() for episode in episodes]
                    table = table.append_column(f"stats/{name}/{key}", [values])
            parquet.write_table(table, building / file.relative_to(self.root), compression="snappy")


def _json(where: Path) -> dict[str, Any]:
    """Read a JSON object from a file."""
    content = parse_json(read_text(where), str(where), finite=False)  # statistics may be NaN
    if not isinstance(content, dict):
        raise FormatError("is not a JSON object", where=str(where))
    levels = _levels(cast("dict[str, Any]", content))
    if levels > _LEVELS:
        raise FormatError(f"is nested too deeply: expected at most {_LEVELS} levels, got {levels}", where=str(where))
    return cast("dict[str, Any]", content)


def _levels(content: dict[str, Any]) -> int:
    """Return the number of nested levels of objects and lists; 1 for an object of plain values."""
    levels = 0
    inside: list[Any] = [content]
    while inside:
        levels += 1
        held: list[Any] = [one for value in inside for one in (value.values() if hasattr(value, "values") else value)]
        inside = [one for one in held if type(one) in (dict, list)]
    return levels


def _write_json(where: Path, content: dict[str, Any]) -> None:
    """Write a JSON file as LeRobot does."""
    where.write_text(json.dumps(content, indent=4, ensure_ascii=False), encoding="utf-8")


def _read_table(parquet: Any, file: Path) -> Any:
    """Read the table of a Parquet file."""
    try:
        return parquet.ParquetFile(file).read()
    except OSError:
        raise
    except Exception as error:  # pyarrow has its own exceptions for damaged files
        raise FormatError(f"is not Parquet ({error})", where=str(file)) from error


def _numbers(table: Any, name: str, file: Path) -> Numbers:
    """Return a column of numbers, (frames, values per frame).

    Raises:
        FormatError: If the column is missing, or has gaps, values that are not finite, or frames of different lengths.
    """
    if name not in table.column_names:
        raise FormatError(f"column {name!r} is missing", where=str(file))
    column = table.column(name).combine_chunks()
    values: Any = column.flatten() if hasattr(column, "flatten") and str(column.type).startswith(_LISTS) else column
    numbers = np.asarray(values.to_numpy(zero_copy_only=False))
    count = len(column)
    if column.null_count or numbers.dtype.kind not in "fiu" or (count and len(numbers) % count):
        raise FormatError(
            f"column {name!r} has gaps, values that are not numbers, or frames of different lengths", where=str(file)
        )
    if not np.isfinite(numbers).all():
        raise FormatError(f"column {name!r} has numbers that are not finite", where=str(file))
    return numbers.reshape(count, -1) if count else numbers.reshape(0, 1)


_LISTS: Final = ("list", "large_list", "fixed_size_list")


def _is_list(table: Any, name: str) -> bool:
    """Return whether a column stores lists of variable length, as in some files, instead of fixed-size lists."""
    return not str(table.schema.field(name).type).startswith("fixed_size_list")


def _with_column(table: Any, name: str, values: Numbers, feature: Feature, *, listed: bool) -> Any:
    """Add a column of numbers (frames, values per frame) to a table, or replace the column with this name."""
    arrow = optional_package("pyarrow", "data sets of LeRobot need pyarrow", "data")
    column = arrow.array(values.reshape(-1))
    if feature.size > 1 and listed:
        column = arrow.ListArray.from_arrays(np.arange(0, values.size + 1, feature.size, dtype=np.int32), column)
    elif feature.size > 1:
        column = arrow.FixedSizeListArray.from_arrays(column, feature.size)
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def _spans(episodes: Numbers) -> Iterator[tuple[int, slice]]:
    """Yield each episode and the slice of its rows."""
    edges = [0, *(np.flatnonzero(np.diff(episodes)) + 1).tolist(), len(episodes)]
    for start, stop in pairwise(edges):
        if stop > start:
            yield int(episodes[start]), slice(start, stop)


def _put(building: Path, place: Path) -> None:
    """Move a finished folder to its place; an existing folder is removed only after the move succeeded."""
    old = building.with_name(building.name + ".old")
    if place.exists():
        place.rename(old)
    try:
        building.rename(place)
    except OSError:
        with suppress(OSError):
            old.rename(place)
        raise
    if old.is_dir() and not old.is_symlink():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)


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
