"""Unpacking of archives: what is inside the folder, and what would not be."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from dualmx.core.archive import unpack
from dualmx.core.errors import FormatError


def zip_of(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, content in members:
            z.writestr(name, content)
    return str(path)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/tmp/x", "."])
def test_nothing_leaves_the_folder(tmp_path, name):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(FormatError, match="would lie outside"):
        unpack(zip_of(tmp_path / "a.zip", (name, b"x")), str(folder))
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        member = tarfile.TarInfo(name)
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(FormatError, match="would lie outside"):
        unpack(str(tmp_path / "a.tar"), str(folder))
    assert not (tmp_path / "x").exists() and not list(folder.iterdir())


def test_links_and_devices_are_left_out(tmp_path):
    folder = tmp_path / "folder"
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        link, device = tarfile.TarInfo("link"), tarfile.TarInfo("device")
        link.type, link.linkname, device.type = tarfile.SYMTYPE, str(tmp_path), tarfile.CHRTYPE
        inside = tarfile.TarInfo("link/x")
        inside.size = 1
        tar.addfile(link)
        tar.addfile(device)
        tar.addfile(inside, io.BytesIO(b"x"))
    assert unpack(str(tmp_path / "a.tar.gz"), str(folder)) == [str(folder / "link" / "x")]
    assert (folder / "link" / "x").read_bytes() == b"x" and not (folder / "link").is_symlink()
    (folder / "out").symlink_to(tmp_path)
    with pytest.raises(FormatError, match="would lie outside"):
        unpack(zip_of(tmp_path / "b.zip", ("out/y", b"x")), str(folder))


def test_small_archives_of_large_files(tmp_path, monkeypatch):
    monkeypatch.setenv("DUALMX_DOWNLOAD_MAX_MB", "1")
    archive = zip_of(tmp_path / "a.zip", ("a", bytes(600_000)), ("b", bytes(600_000)))
    with pytest.raises(FormatError, match="DUALMX_DOWNLOAD_MAX_MB"):
        unpack(archive, str(tmp_path / "folder"))
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["a"]


def test_damaged_archives(tmp_path):
    archive = zip_of(tmp_path / "a.zip", ("a", bytes(range(256)) * 100))
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[60] ^= 255
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(FormatError, match="damaged"):
        unpack(archive, str(tmp_path / "folder"))
    with tarfile.open(tmp_path / "b.tgz", "w:gz") as tar:
        tar.add(__file__, "b")
    content = (tmp_path / "b.tgz").read_bytes()
    for end in (0, 5, len(content) // 2):
        (tmp_path / "b.tgz").write_bytes(content[:end])
        with pytest.raises(FormatError, match="damaged, or no zip or tar file"):
            unpack(str(tmp_path / "b.tgz"), str(tmp_path / "folder"))
    assert not list((tmp_path / "folder").iterdir())
