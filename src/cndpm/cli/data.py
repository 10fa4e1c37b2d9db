"""``cndpm data``: shows which datasets are on disk, downloads and checks them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cndpm.cli import options

data_app = typer.Typer(help="Datasets on disk.", no_args_is_help=True, rich_markup_mode=None)


@data_app.command()
def status(data_dir: options.DataDir = None, json: options.Json = False) -> None:
    """Show which datasets are on disk, and where."""
    from cndpm.cli.show import show
    from cndpm.datasets import dataset_status, resolve_data_dir
    from cndpm.experiments.printed_tables import FoldingTable

    found = dataset_status(data_dir)
    rows = [
        [one.name, "yes" if one.present else "no", f"{one.n_bytes / 1e6:.1f}", str(one.location or "–"), one.summary]
        for one in found
    ]
    folder = resolve_data_dir(data_dir)
    datasets = [asdict(one) | {"location": None if one.location is None else str(one.location)} for one in found]
    content = {"data_dir": str(folder), "datasets": datasets}
    header = ["dataset", "on disk", "MB", "where", ""]
    show(content, [FoldingTable(f"datasets under {folder}", header, rows)], as_json=json)


@data_app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Datasets to download, or all.")],
    data_dir: options.DataDir = None,
    force: Annotated[bool, typer.Option("--force", help="Replace also what can be read.")] = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Download datasets and verify their SHA-256.

    Files that can be read are kept, damaged ones replaced; interrupted downloads resume.
    """
    from cndpm.cli.show import download_bars, show
    from cndpm.datasets import dataset_names, fetch_dataset
    from cndpm.datasets.catalogue import catalogue_entry

    chosen = dataset_names() if names == ["all"] else names
    for name in chosen:
        catalogue_entry(name)  # a mistyped name is reported before the first download
    with download_bars(quiet=quiet) as bars:
        folders = {name: str(fetch_dataset(name, data_dir, progress=bars, force=force)) for name in chosen}
    show({"fetched": folders}, [], as_json=json)
    if not json:
        print("\n".join(f"{name}: in {folder}" for name, folder in folders.items()))


@data_app.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Datasets.", show_default="all on disk")
    ] = None,
    data_dir: options.DataDir = None,
    json: options.Json = False,
) -> None:
    """Compare datasets on disk with what was published; ends with 1 where they differ.

    Compared are checksums of the content where known, and numbers of samples and classes.
    """
    from cndpm.cli.show import show
    from cndpm.datasets import dataset_status, verify_dataset
    from cndpm.experiments.printed_tables import FoldingTable

    chosen = names or [one.name for one in dataset_status(data_dir) if one.present]
    checks = {name: verify_dataset(name, data_dir) for name in chosen}
    rows = [
        [name, check.what, "right" if check.ok else "WRONG", check.found] for name in chosen for check in checks[name]
    ]
    content = {name: [asdict(check) for check in found] for name, found in checks.items()}
    show(content, [FoldingTable("", ["dataset", "what", "", "found"], rows)], as_json=json)
    wrong = [name for name in chosen if not all(check.ok for check in checks[name])]
    if wrong:
        typer.echo(f"To replace what differs: cndpm data fetch {' '.join(wrong)} --force", err=True)
        raise typer.Exit(1)
