"""Datasets: files on disk or fetched, and one's own.

train, test = load_dataset("digits")
"""

from typing import TYPE_CHECKING

from cndpm.lazy import lazily

if TYPE_CHECKING:
    from cndpm.datasets.catalogue import dataset_names
    from cndpm.datasets.dataset import Dataset, Split
    from cndpm.datasets.fetching import FetchError, fetch_dataset
    from cndpm.datasets.files import DamagedFileError, RefusedPickleError
    from cndpm.datasets.inventory import Check, DatasetStatus, dataset_status, verify_dataset
    from cndpm.datasets.loading import MissingDataError, load_dataset, resolve_data_dir

__all__ = [
    "Check",
    "DamagedFileError",
    "Dataset",
    "DatasetStatus",
    "FetchError",
    "MissingDataError",
    "RefusedPickleError",
    "Split",
    "dataset_names",
    "dataset_status",
    "fetch_dataset",
    "load_dataset",
    "resolve_data_dir",
    "verify_dataset",
]

__getattr__ = lazily(__name__)
