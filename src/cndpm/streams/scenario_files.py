"""Scenarios by name, which ``scenarios.toml`` beside this file holds, or from a file.

A TOML (or YAML) file holds the fields of :class:`~cndpm.streams.Scenario`. A YAML file that is a list of stages, each
with ``subsets: [[dataset, class], ...]`` and one of ``epochs``, ``steps``, ``samples``, is an episode file of the
authors' release, and is read as it is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cndpm.errors import CNDPMError
from cndpm.extras import require_extra
from cndpm.names import UnknownNameError, nearest_names
from cndpm.streams.drift import DRIFTS, FILED, DriftScenario, drift_scenario
from cndpm.streams.scenario import Scenario, Transform
from cndpm.streams.variations import VARIATIONS, reorder_classes, repeat, set_epochs
from cndpm.validation import ConfigError, validate

__all__ = ["ScenarioFileError", "load_scenario", "scenario_names"]

PRESETS: dict[str, Any] = tomllib.loads(files("cndpm.streams").joinpath("scenarios.toml").read_text(encoding="utf-8"))
"""The fields of scenarios that are known by name."""

_SUFFIXES = {".toml", ".yaml", ".yml"}
_TABLES = {".csv", ".tsv", ".parquet", ".feather", ".xlsx"}
_MAX_BYTES = 1 << 20
_MAX_MESSAGE = 300  # characters of what a parser says


class _Options(BaseModel):
    """Checks the options of :func:`load_scenario`."""

    model_config = ConfigDict(allow_inf_nan=False)

    epochs: Annotated[float, Field(gt=0)] | None = None
    repeats: Annotated[int, Field(ge=1, le=10_000)] | None = None
    fraction: float | None = None
    batch_size: int | None = None
    class_order: tuple[int, ...] | None = None


class ScenarioFileError(CNDPMError, ValueError):
    """A scenario's file says something that cannot be; the message names the file, the place and the mistake."""


def scenario_names(*, variations: bool = False) -> tuple[str, ...]:
    """Returns the presets, their iid versions, and streams of rows; with `variations`, every prefix of every preset."""
    prefixes = tuple(VARIATIONS) if variations else ("iid",)
    return (*PRESETS, *(f"{prefix}-{name}" for prefix in prefixes for name in PRESETS), *DRIFTS, *FILED)


def load_scenario(
    source: str | Path,
    *,
    epochs: float | None = None,
    repeats: int | None = None,
    fraction: float | None = None,
    batch_size: int | None = None,
    class_order: Sequence[int] | None = None,
    validation: bool = False,
) -> Scenario | DriftScenario:
    """Finds a scenario and applies options to it; a prefix of its name varies what the options made.

    Args:
        source: A name of :func:`scenario_names`, or the path of a TOML or YAML file.
        epochs: Presents every stage for so many epochs.
        repeats: Presents the whole scenario so many times.
        fraction: Keeps this share of every class's training samples.
        batch_size: Samples in a batch.
        class_order: The classes in the order in which they take the scenario's places.
        validation: Whether a tenth of every class's training samples takes the place of the test set.

    Example:
        >>> load_scenario("split-cifar10", epochs=10).stages[0].epochs
        10.0
    """
    options = {"epochs": epochs, "repeats": repeats, "class_order": class_order}
    options |= {"fraction": fraction, "batch_size": batch_size}
    given = {name: value for name, value in options.items() if value is not None}
    validate(_Options, given, "scenario")
    if source in DRIFTS or source in FILED:
        return _rows_in_order(str(source), given, validation=validation)
    is_file = Path(source).suffix.lower() in _SUFFIXES
    prefixes, scenario = ((), _read_file(Path(source))) if is_file else _find_preset(str(source))
    if class_order is not None:
        scenario = reorder_classes(scenario, class_order)
    if epochs is not None:
        scenario = set_epochs(scenario, epochs)
    if repeats is not None:
        scenario = repeat(scenario, repeats)
    changed: dict[str, Any] = {name: given[name] for name in ("fraction", "batch_size") if name in given}
    changed |= {"validation": True} if validation else {}
    scenario = validate(Scenario, {**scenario.model_dump(), **changed}, "scenario")
    for prefix in reversed(prefixes):
        vary, what = VARIATIONS[prefix]
        named = {"name": f"{prefix}-{scenario.name}", "summary": f"{scenario.summary}; {what}"}
        scenario = vary(scenario).model_copy(update=named)
    return scenario


def _rows_in_order(name: str, given: dict[str, Any], *, validation: bool) -> DriftScenario:
    """Returns a stream of rows; refuses options that would draw, drop, repeat or hold out some of them."""
    if validation:
        raise ConfigError(
            f"{name} is a stream of rows without a test set, answered before they are learned: there is nothing to "
            "hold out of it. Leave validation out."
        )
    if given.keys() - {"batch_size"}:
        raise ConfigError(
            f"{name} is a stream of rows in a fixed order; epochs, repeats, fraction and class_order are for scenarios "
            "of datasets. Leave them out; batch_size may be set, and max_batches ends the run early."
        )
    return drift_scenario(name, **given)


def _find_preset(name: str) -> tuple[tuple[str, ...], Scenario]:
    """Splits a name into its prefixes and the preset behind them."""
    prefixes: tuple[str, ...] = ()
    rest = name
    while rest not in PRESETS:
        prefix, _, rest = rest.partition("-")
        if prefix not in VARIATIONS:
            _refuse_data(name)
            known = (*scenario_names(variations=True), *_files_called(name))
            plain = [one for one in scenario_names() if one.partition("-")[0] not in VARIATIONS]
            raise UnknownNameError("scenario", name, known if nearest_names(name, known) else plain)
        prefixes += (prefix,)
    return prefixes, Scenario(name=rest, **PRESETS[rest])


def _files_called(name: str) -> tuple[str, ...]:
    """Returns the scenario files of that name in the current folder, for who left the ending out."""
    try:
        return tuple(name + suffix for suffix in sorted(_SUFFIXES) if Path(name + suffix).is_file())
    except (OSError, ValueError):  # no file can be called so
        return ()


def _refuse_data(name: str) -> None:
    """Raises where the name is that of a folder or of a file of data, which say nothing of an order in time."""
    try:
        is_data = Path(name).is_dir() or Path(name).suffix == ".npz"
        is_table = Path(name).suffix in _TABLES and Path(name).is_file()
    except (OSError, ValueError):
        return
    if is_table:
        raise ScenarioFileError(
            f"{name} is a table; scenarios are of folders of images and of .npz files. Learn it row by row with `cndpm "
            f"fit {name} --target COLUMN -o model.cndpm`, or for a scenario numpy.savez('table.npz', x=..., y=...)."
        )
    if _files_called(name) or not is_data:
        return
    raise ScenarioFileError(
        f"{name} holds data; a scenario says which classes of it come when. Write a file of stages such as stages = "
        f'[{{ epochs = 1, subsets = [{{ dataset = "{name}", classes = ["..."] }}] }}], and run `cndpm run FILE.toml`.'
    )


def _read_file(path: Path) -> Scenario:
    content = _parse(path)
    if isinstance(content, list):
        content = {"stages": content}
        content |= _common_shape(content["stages"])
    if not isinstance(content, dict):
        raise ScenarioFileError(
            f"{path} should hold a scenario's fields or a list of stages; got {type(content).__name__}"
        )
    content = {"name": path.stem, **content}
    if isinstance(content.get("stages"), list):
        content["stages"] = [_read_stage(stage, path) for stage in content["stages"]]
    try:
        return validate(Scenario, content, "scenario")
    except (UnknownNameError, ConfigError) as error:
        raise ScenarioFileError(f"{path}: {error}") from None


def _parse(path: Path) -> Any:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ScenarioFileError(f"{path} is larger than {_MAX_BYTES} bytes, which no scenario is")
        return parsed(path)
    except FileNotFoundError:
        raise ScenarioFileError(f"there is no scenario file at {path}") from None
    except RecursionError:
        raise ScenarioFileError(f"{path} is not readable: it is nested too deeply") from None
    except (OSError, ValueError) as error:  # of the disk, of TOML, YAML or the encoding
        said = " ".join(str(error).split())
        raise ScenarioFileError(f"{path} is not readable: {said[:_MAX_MESSAGE]}") from error


def parsed(path: Path) -> Any:
    """Returns what a TOML or YAML file holds; OSError, ValueError or RecursionError where it cannot be read."""
    text = path.read_text(encoding="utf-8")
    if path.suffix.lower() == ".toml":
        return tomllib.loads(text)
    require_extra("yaml", purpose="a file in YAML")
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _read_stage(stage: Any, path: Path) -> Any:
    """Brings pairs [dataset, class] to subsets, neighbours of one dataset to one, and own datasets to their place."""
    subsets = stage.get("subsets") if isinstance(stage, dict) else None
    if not isinstance(subsets, list):
        return stage
    if all(map(_is_pair, subsets)):
        by_dataset = groupby(subsets, key=itemgetter(0))
        subsets = [{"dataset": dataset, "classes": [label for _, label in pairs]} for dataset, pairs in by_dataset]
    return {**stage, "subsets": [_place(subset, path) for subset in subsets]}


def _is_pair(subset: Any) -> bool:
    return isinstance(subset, list) and len(subset) == 2 and isinstance(subset[0], str | int)


def _place(subset: Any, path: Path) -> Any:
    """Gives a dataset that lies beside the scenario's file its whole path."""
    if isinstance(subset, dict) and isinstance(subset.get("dataset"), str) and subset["dataset"]:
        beside = path.parent / subset["dataset"]
        with suppress(OSError):  # its name is too long for a file
            if beside.is_dir() or (beside.suffix == ".npz" and beside.is_file()):
                return {**subset, "dataset": str(beside.resolve())}
    return subset


def _common_shape(stages: list[Any]) -> dict[str, Any]:
    """Returns 32 x 32 images of three channels for episode files of several datasets, which cannot say it."""
    subsets = [s for stage in stages if isinstance(stage, dict) for s in stage.get("subsets") or () if _is_pair(s)]
    several = len({dataset for dataset, _ in subsets}) > 1
    return {"transform": Transform(size=32, channels=3).model_dump()} if several else {}
