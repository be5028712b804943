"""Data iterators of the Module world: batches as `DataBatch`, described by `DataDesc`."""

from __future__ import annotations

from .arrays import NDArrayIter
from .batch import DataBatch, DataDesc
from .csv import CSVIter
from .idx import MNISTIter
from .image_records import ImageDetRecordIter, ImageRecordInt8Iter, ImageRecordIter, ImageRecordUInt8Iter
from .iterator import DataIter, PrefetchingIter, ResizeIter
from .libsvm import LibSVMIter

MXDataIter = DataIter  # MXNet's name of iterators implemented inside the library

__all__ = [
    "CSVIter",
    "DataBatch",
    "DataDesc",
    "DataIter",
    "ImageDetRecordIter",
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordUInt8Iter",
    "LibSVMIter",
    "MNISTIter",
    "MXDataIter",
    "NDArrayIter",
    "PrefetchingIter",
    "ResizeIter",
]
