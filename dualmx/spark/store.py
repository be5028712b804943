"""Stores for training data, checkpoints and models of estimators."""

from __future__ import annotations

import os
import re
import uuid
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..io.arrow_columns import arrow

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


class Store:
    """Base of stores: a folder that Spark, this program and all processes of a training see.

    Subclasses define `exists`, `read`, `write`, `delete` and `readable`.

    Args:
        prefix_path: the folder, as Spark names it.
        train_path, val_path: Parquet data for `fit_on_parquet`; `intermediate_train_data` and `intermediate_val_data`
            in the folder by default.
        runs_path: folder of the runs; `runs` in the folder by default.

    Example:
        >>> store = Store.create("/data/digits")
        >>> type(store).__name__, store.get_checkpoint_path("first")
        ('LocalStore', 'file:///data/digits/runs/first/checkpoint.ckpt')
    """

    def __init__(
        self, prefix_path: str, train_path: str | None = None, val_path: str | None = None,
        runs_path: str | None = None,
    ):  # fmt: skip
        self.prefix_path = prefix_path.rstrip("/")
        self._train = train_path or f"{self.prefix_path}/intermediate_train_data"
        self._val = val_path or f"{self.prefix_path}/intermediate_val_data"
        self._runs = runs_path or f"{self.prefix_path}/runs"

    @staticmethod
    def create(prefix_path: str | os.PathLike[str], **kwargs: Any) -> FilesystemStore:
        """Return the store of a folder: on this host, or where its URI says.

        Args:
            prefix_path: a path, or a URI such as `hdfs://host:8020/data`.
            **kwargs: other arguments of `Store`.

        Raises:
            ArgumentError: not a URI that can be used.
        """
        scheme = _SCHEME.match(os.fspath(prefix_path))
        if scheme is None or scheme[1] == "file":
            return LocalStore(prefix_path, **kwargs)
        kind = HDFSStore if scheme[1] == "hdfs" else FilesystemStore
        return kind(os.fspath(prefix_path), **kwargs)

    # -- where things are

    def get_train_data_path(self) -> str:
        """Return where training data for `fit_on_parquet` is."""
        return self._train

    def get_val_data_path(self) -> str:
        """Return where data for the validations of `fit_on_parquet` is."""
        return self._val

    def get_frame_path(self, name: str) -> str:
        """Return where `fit` writes a data frame, until it is over."""
        return f"{self.prefix_path}/intermediate_frames/{name}"

    def get_runs_path(self) -> str:
        """Return the folder of all runs."""
        return self._runs

    def get_run_path(self, run_id: str) -> str:
        """Return the folder of a run.

        Raises:
            ArgumentError: `run_id` is no name of a folder.
        """
        if not isinstance(run_id, str) or not re.fullmatch(r"\w[\w.=+-]*", run_id):
            raise ArgumentError(f"Store: run_id={run_id!r}: expected letters, digits, _, -, +, = and dots")
        return f"{self._runs}/{run_id}"

    def get_checkpoint_path(self, run_id: str) -> str:
        """Return the file with the weights of a run and all that is needed to resume it."""
        return f"{self.get_run_path(run_id)}/checkpoint.ckpt"

    def get_logs_path(self, run_id: str) -> str:
        """Return a folder for what callbacks write."""
        return f"{self.get_run_path(run_id)}/logs"

    # -- what subclasses define

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder."""
        raise NotImplementedError(f"{type(self).__name__} must define exists")

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        raise NotImplementedError(f"{type(self).__name__} must define read")

    def write(self, path: str, content: bytes) -> None:
        """Write a file atomically."""
        raise NotImplementedError(f"{type(self).__name__} must define write")

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing happens if there is none."""
        raise NotImplementedError(f"{type(self).__name__} must define delete")

    def readable(self, path: str) -> str:
        """Return a path as `mx.io.ParquetReader` takes it."""
        raise NotImplementedError(f"{type(self).__name__} must define readable")


class FilesystemStore(Store):
    """A store on a file system that both pyarrow and Spark know by its URI, such as `hdfs`, `s3` or `gs`.

    Args:
        prefix_path: URI of the folder, without a password: credentials are a matter of the file system's own settings.
        **kwargs: other arguments of `Store`.

    Raises:
        ArgumentError: not a URI, or one with a password.
    """

    def __init__(self, prefix_path: str, **kwargs: Any):
        if not re.match(_SCHEME.pattern + "//", prefix_path):
            raise ArgumentError(
                f"{type(self).__name__}: prefix_path={prefix_path!r}: expected a URI such as 'hdfs://host:8020/data'"
            )
        if re.match(r"[^/]+//[^/@]*:[^/@]*@", prefix_path):
            raise ArgumentError(
                f"{type(self).__name__}: prefix_path holds a password: expected a URI without one; set credentials "
                "where the file system looks for them"
            )
        super().__init__(prefix_path, **kwargs)

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder."""
        system, inner = self._found("look for", path)
        return system.get_file_info(inner).type != arrow("pyarrow.fs").FileType.NotFound

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            MXNetError: it cannot be read.
        """
        system, inner = self._found("read", path)
        try:
            with system.open_input_stream(inner) as f:
                return f.read()
        except OSError as e:
            raise self._failed("read", path, e) from None

    def write(self, path: str, content: bytes) -> None:
        """Write a file atomically; missing folders are created.

        Raises:
            MXNetError: it cannot be written.
        """
        system, inner = self._found("write", path)
        draft = f"{inner}.{uuid.uuid4().hex}"
        try:
            system.create_dir(inner.rpartition("/")[0])
            with system.open_output_stream(draft) as f:
                f.write(content)
            system.move(draft, inner)
        except OSError as e:
            raise self._failed("write", path, e) from None

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing happens if there is none.

        Raises:
            MXNetError: it cannot be removed.
        """
        system, inner = self._found("remove", path)
        kinds = arrow("pyarrow.fs").FileType
        try:
            kind = system.get_file_info(inner).type
            if kind == kinds.Directory:
                system.delete_dir(inner)
            elif kind != kinds.NotFound:
                system.delete_file(inner)
        except OSError as e:
            raise self._failed("remove", path, e) from None

    def readable(self, path: str) -> str:
        """Return a path as `mx.io.ParquetReader` takes it: the URI."""
        return path

    def _found(self, what: str, path: str) -> tuple[Any, str]:
        """The file system that a path is on, and the path there."""
        try:
            return arrow("pyarrow.fs").FileSystem.from_uri(path)
        except (OSError, arrow().ArrowException) as e:
            raise self._failed(what, path, e) from None

    def _failed(self, what: str, path: str, cause: Exception) -> MXNetError:
        return MXNetError(f"{type(self).__name__}: cannot {what} {path!r}: {cause}")


class LocalStore(FilesystemStore):
    """A store in a folder of this host, which all hosts of a cluster must share.

    Args:
        prefix_path: the folder, which need not exist.
        **kwargs: other arguments of `Store`.

    Raises:
        ArgumentTypeError: not a path.
    """

    def __init__(self, prefix_path: str | os.PathLike[str], **kwargs: Any):
        if not isinstance(prefix_path, (str, os.PathLike)):
            kind = type(prefix_path).__name__
            raise ArgumentTypeError(f"LocalStore: prefix_path of type {kind}: expected a path")
        folder = re.sub(r"^file:(//)?(?=/)", "", os.fspath(prefix_path))
        # Spark takes the characters of such a path as they are, so they are not percent-encoded.
        super().__init__(f"file://{os.path.abspath(folder)}", **{k: _local(v) for k, v in kwargs.items()})

    def readable(self, path: str) -> str:
        """Return a path as `mx.io.ParquetReader` takes it."""
        return path.removeprefix("file://")

    def _found(self, what: str, path: str) -> tuple[Any, str]:
        return arrow("pyarrow.fs").LocalFileSystem(), self.readable(path)


def _local(path: Any) -> Any:
    return path if path is None or str(path).startswith("file:") else f"file://{os.path.abspath(path)}"


class HDFSStore(FilesystemStore):
    """A store on HDFS, which pyarrow reaches by Hadoop's libraries (`HADOOP_HOME`, `CLASSPATH`).

    Args:
        prefix_path: `hdfs://host:port/folder`; without a host the one of Hadoop's settings.
        **kwargs: other arguments of `Store`.

    Raises:
        ArgumentError: another path.

    Example:
        >>> HDFSStore("hdfs:///data/digits").get_train_data_path()
        'hdfs:///data/digits/intermediate_train_data'
    """

    def __init__(self, prefix_path: str, **kwargs: Any):
        if not prefix_path.startswith("hdfs://"):
            raise ArgumentError(f"HDFSStore: prefix_path={prefix_path!r}: expected 'hdfs://host:port/folder'")
        super().__init__(prefix_path, **kwargs)


__all__ = ["FilesystemStore", "HDFSStore", "LocalStore", "Store"]
