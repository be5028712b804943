"""Download files that are not there yet."""

from __future__ import annotations

import os
import warnings

from .errors import ArgumentError, DownloadError, without_password
from .lock import exclusive
from .reader import sha1_of


def check_sha1(filename: str, sha1_hash: str) -> bool:
    """True if the SHA-1 of a file's content is `sha1_hash` (hexadecimal)."""
    with open(filename, "rb") as f:
        return sha1_of(f) == sha1_hash.lower()


def replace_file(src: str, dst: str) -> None:
    """Rename `src` to `dst` in one step, replacing what is there."""
    os.replace(src, dst)


def download(
    url: str,
    path: str | None = None,
    overwrite: bool = False,
    sha1_hash: str | None = None,
    retries: int = 5,
    verify_ssl: bool = True,
) -> str:
    """Fetch the file at `url` unless it is there, and return its local path.

    What was received before a connection broke off stays beside the file, as `<file>.part`, and is continued where the
    server can do that, also by a later process. The file itself is complete or not changed. Of several processes that
    ask for one file, one fetches it. `DUALMX_MIRRORS` names other places, `DUALMX_DOWNLOAD_MAX_MB` and
    `DUALMX_DOWNLOAD_TIMEOUT` bound size and waiting. Proxies are those of the environment.

    Args:
        url: of scheme http, https or file.
        path: where the file is or goes: a path or a directory; the working directory by default.
        overwrite: fetch it even if it is there.
        sha1_hash: SHA-1 that the file must have, hexadecimal; one that is there with another is fetched again.
        retries: attempts at each address, with growing pauses; for errors that may pass.
        verify_ssl: check the certificates of https servers.

    Raises:
        ArgumentError: no file name in `url`, or `retries` below 0.
        DownloadError: the file cannot be had; the message says why for each address.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.txt").write_text("content")
        >>> copy = download(f"file://{folder}/a.txt", path=str(folder / "b.txt"))  # doctest: +ELLIPSIS
        Downloading .../b.txt from file:///.../a.txt...
        >>> pathlib.Path(copy).read_text()
        'content'
    """
    target = _target(url, path)
    if retries < 0:
        raise ArgumentError(f"download: retries={retries}: expected 0 or more")
    if not verify_ssl:
        warnings.warn(
            "download: certificates are not checked (verify_ssl=False): anybody on the way can change the file",
            stacklevel=2,
        )

    def there() -> bool:
        return os.path.isfile(target) and (not sha1_hash or check_sha1(target, sha1_hash))

    if not overwrite and there():
        return target
    try:
        os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
        with exclusive(target) as file:
            if overwrite or not there():
                from .transfer import fetch  # which takes time to import

                print(f"Downloading {target} from {without_password(url)}...")
                fetch(url, target, file, sha1_hash, max(1, retries), verify_ssl)
    except OSError as e:
        if isinstance(e, DownloadError):
            raise
        raise DownloadError(f"download: {without_password(url)}: cannot write {target!r}: {e.strerror or e}") from None
    return target


def _target(url: str, path: str | None) -> str:
    name = url.split("/")[-1]
    place = name if path is None else os.path.expanduser(path)
    if path is None or os.path.isdir(place):
        if not name:
            raise ArgumentError(f"download: {without_password(url)} ends without a file name: pass path=")
        place = name if path is None else os.path.join(place, name)
    return place


__all__ = ["check_sha1", "download", "replace_file"]
