"""``cndpm data``: what is on disk, download with checksums, check."""

from __future__ import annotations

from typing import Annotated

import typer

from cndpm.cli import options

__all__ = ["data_app"]

data_app = typer.Typer(help="Datasets on disk: status, fetch, verify.", no_args_is_help=True, rich_markup_mode=None)


@data_app.command()
def status(data_dir: options.DataDir = None, json: options.Json = False) -> None:
    """Show which datasets are on disk, and where."""
    from cndpm.cli.show import show, table
    from cndpm.datasets import dataset_status, resolve_data_dir

    found = dataset_status(data_dir)
    rows = [
        [one.name, "yes" if one.present else "no", f"{one.n_bytes / 1e6:.1f}", str(one.location or "–"), one.summary]
        for one in found
    ]
    folder = resolve_data_dir(data_dir)
    content = {
        "data_dir": str(folder),
        "datasets": [
            {
                "name": one.name,
                "present": one.present,
                "location": None if one.location is None else str(one.location),
                "n_bytes": one.n_bytes,
            }
            for one in found
        ],
    }
    header = ["dataset", "on disk", "MB", "where", ""]
    show(content, [table(f"datasets under {folder}", header, rows)], as_json=json)


@data_app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Datasets to download, or all.")],
    data_dir: options.DataDir = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Download datasets, checked by sha256; what is there is kept, what broke off goes on."""
    from cndpm.cli.progress import DownloadBars
    from cndpm.cli.show import show
    from cndpm.datasets import dataset_names, fetch_dataset
    from cndpm.datasets.catalogue import catalogue_entry

    chosen = dataset_names() if names == ["all"] else names
    for name in chosen:
        catalogue_entry(name)  # a mistyped name is reported before the first download
    with DownloadBars(quiet=quiet) as bars:
        folders = {name: str(fetch_dataset(name, data_dir, progress=bars)) for name in chosen}
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
    """Compare datasets on disk with what was published; ends with 1 where they differ."""
    from cndpm.cli.show import show, table
    from cndpm.datasets import dataset_status, verify_dataset

    chosen = names or [one.name for one in dataset_status(data_dir) if one.present]
    checks = {name: verify_dataset(name, data_dir) for name in chosen}
    rows = [
        [name, check.what, "right" if check.ok else "WRONG", check.found] for name in chosen for check in checks[name]
    ]
    content = {
        name: [{"what": check.what, "ok": check.ok, "found": check.found} for check in found]
        for name, found in checks.items()
    }
    show(content, [table("", ["dataset", "what", "", "found"], rows)], as_json=json)
    if not all(check.ok for found in checks.values() for check in found):
        raise typer.Exit(1)
