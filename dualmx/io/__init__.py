"""Data iterators for `Module`: batches are `DataBatch`, described by `DataDesc`."""

from __future__ import annotations

from . import io
from .csv_iter import CSVIter
from .data_batch import DataBatch, DataDesc
from .data_iter import DataIter, MXDataIter, PrefetchingIter, ResizeIter
from .image_record_iter import ImageDetRecordIter, ImageRecordInt8Iter, ImageRecordIter, ImageRecordUInt8Iter
from .libsvm_iter import LibSVMIter
from .mnist import MNISTIter
from .ndarray_iter import NDArrayIter
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
