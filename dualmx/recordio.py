"""RecordIO files and image records: `MXRecordIO`, `MXIndexedRecordIO`, `pack`, `unpack`, `pack_img`, `unpack_img`."""

from .io.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, pack, pack_img, unpack, unpack_img

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "unpack", "unpack_img"]
