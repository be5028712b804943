"""Data iterators of the Module world: batches as `DataBatch`, described by `DataDesc`."""

from __future__ import annotations

from . import io
from .arrays import NDArrayIter
from .batch import DataBatch, DataDesc
from .csv import CSVIter
from .idx import MNISTIter
from .image_records import ImageDetRecordIter, ImageRecordInt8Iter, ImageRecordIter, ImageRecordUInt8Iter
from .iterator import DataIter, MXDataIter, PrefetchingIter, ResizeIter
from .libsvm import LibSVMIter
from .parquet import ParquetIter, ParquetReader

ImageRecordIter_v1, ImageRecordUInt8Iter_v1 = ImageRecordIter, ImageRecordUInt8Iter  # MXNet's older names

__all__ = [
    "CSVIter",
    "DataBatch",
    "DataDesc",
    "DataIter",
    "ImageDetRecordIter",
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordUInt8Iter",
    "ImageRecordUInt8Iter_v1",
    "LibSVMIter",
    "MNISTIter",
    "MXDataIter",
    "NDArrayIter",
    "ParquetIter",
    "ParquetReader",
    "PrefetchingIter",
    "ResizeIter",
    "io",
]
