"""Data iterators for `Module`: batches are `DataBatch`, described by `DataDesc`."""

from . import data_iter, image_record_iter, io
from .csv_iter import CSVIter
from .data_batch import DataBatch, DataDesc
from .data_iter import *
from .image_record_iter import *
from .libsvm_iter import LibSVMIter
from .mnist import MNISTIter
from .ndarray_iter import NDArrayIter
from .parquet import ParquetIter, ParquetReader

# MXNet's older names
ImageRecordIter_v1, ImageRecordUInt8Iter_v1 = image_record_iter.ImageRecordIter, image_record_iter.ImageRecordUInt8Iter

__all__ = [
    "CSVIter", "DataBatch", "DataDesc", "ImageRecordIter_v1", "ImageRecordUInt8Iter_v1", "LibSVMIter", "MNISTIter",
    "NDArrayIter", "ParquetIter", "ParquetReader", "io",
]  # fmt: skip
__all__ += data_iter.__all__
__all__ += image_record_iter.__all__
