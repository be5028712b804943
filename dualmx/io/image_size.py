"""Decoded size of a compressed image, read from its header before anything is decoded."""

from __future__ import annotations

import re
import struct

from ..core.reader import Content

MAX_SCANS = 100  # of a progressive JPEG, each of which is a pass over the whole image; encoders make about 10
_PNM = re.compile(rb"P[1-7fF](?:\s|#[^\n]*\n)+(?:WIDTH\s+)?(\d{1,9})(?:\s|#[^\n]*\n)+(?:HEIGHT\s+)?(\d{1,9})")
_HDR = re.compile(rb"#\?(?:RADIANCE|RGBE)\b[^\0]{0,2000}?\n[-+]Y (\d{1,9}) [-+]X (\d{1,9})\n")
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # markers of JPEG with the size; the others are tables
_PROGRESSIVE = {0xC2, 0xC6, 0xCA, 0xCE}
_TIFF = {b"II*\0": "<", b"MM\0*": ">"}


def memory_of(content: Content, flag: int = 1) -> int:
    """Return the measured number of bytes that OpenCV needs to decode an image: its output and one copy.

    JPEGs, which are photographs of any size, are counted at two thirds of that.

    Args:
        content: the image.
        flag: 1 for three channels, 0 for one, -1 as the image has them.

    Raises:
        FormatError: none of the formats that OpenCV reads, or a damaged header.
    """
    data = memoryview(content.data).cast("B")
    start = bytes(data[:32])
    with content.parsing(struct.error, IndexError):
        if start.startswith(b"\xff\xd8\xff"):
            return _jpeg(content, data, flag)
        if start.startswith(b"\x89PNG\r\n\x1a\n") and start[12:16] == b"IHDR":
            return _png(content, data, flag)
        if start.startswith(b"BM"):
            size = struct.unpack("<I", start[14:18])[0]
            width, height = struct.unpack("<HH", start[18:22]) if size == 12 else struct.unpack("<ii", start[18:26])
            return abs(width) * abs(height) * 8
        if start[:6] in (b"GIF87a", b"GIF89a"):
            width, height = struct.unpack("<HH", start[6:10])
            return width * height * 16
        if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
            return _webp(start) * 8
        if start[:4] in _TIFF:
            return _tiff(content, data, _TIFF[start[:4]])
        if start[:4] == b"\x59\xa6\x6a\x95":
            width, height = struct.unpack(">II", start[4:12])
            return width * height * 8
        if start[4:8] == b"jP  " or start[:4] == b"\xff\x4f\xff\x51":
            return _jpeg2000(content, bytes(data[: 1 << 16])) * 20
        if start[4:8] == b"ftyp":
            return _boxes(content, bytes(data[: 1 << 16])) * 16
        for form in (_PNM, _HDR):
            if match := form.match(bytes(data[:4096])):
                return int(match[1]) * int(match[2]) * 24
    raise content.error(
        f"{len(data)} bytes that begin with {start[:8].hex()}: not a readable image",
        0,
        "a JPEG, PNG or other image file",
    )


def _jpeg(content: Content, data: memoryview, flag: int) -> int:
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            break
        marker = data[at + 1]
        if marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD8:  # filling, or markers without a length
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _FRAMES:
            height, width, channels = struct.unpack(">HHB", data[at + 5 : at + 10])
            counted = height * width * (4 if flag else 2)
            if marker not in _PROGRESSIVE:
                return counted
            if (scans := bytes(data).count(b"\xff\xda")) > MAX_SCANS:
                raise content.error(f"a progressive JPEG of {scans} scans", None, f"at most {MAX_SCANS}")
            return counted + height * width * channels
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise content.error("not a readable image, a JPEG without the marker of its size", min(at, len(data)))


def _png(content: Content, data: memoryview, flag: int) -> int:
    at, most = 8, 0
    while at < len(data):  # OpenCV takes memory for a chunk before it sees that the file is shorter
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        if at + 12 + size > len(data):
            raise content.error(f"not a readable image, a PNG with a chunk of {size} bytes", at)
        if kind in (b"IHDR", b"fcTL"):  # of the image, or of a picture of an animation
            place = at + (8 if kind == b"IHDR" else 12)
            width, height = struct.unpack(">II", data[place : place + 8])
            most = max(most, width * height)
        at += 12 + size
        if kind == b"IEND":
            break
    depth, colour = data[24], data[25]
    channels = {0: 1, 1: 3}.get(flag) or {0: 1, 2: 3}.get(colour, 4)
    return most * channels * (4 if depth == 16 and flag < 0 else 2)


def _webp(start: bytes) -> int:
    if start[12:16] == b"VP8X":
        return (int.from_bytes(start[24:27], "little") + 1) * (int.from_bytes(start[27:30], "little") + 1)
    if start[12:16] == b"VP8L":
        bits = int.from_bytes(start[21:25], "little")
        return ((bits & 0x3FFF) + 1) * ((bits >> 14 & 0x3FFF) + 1)
    width, height = struct.unpack("<HH", start[26:30])
    return (width & 0x3FFF) * (height & 0x3FFF)


def _tiff(content: Content, data: memoryview, order: str) -> int:
    at = struct.unpack(order + "I", data[4:8])[0]
    found = {258: 1, 277: 1}  # bits of a sample, samples of a pixel
    for i in range(min(struct.unpack(order + "H", data[at : at + 2])[0], 4096)):
        tag, kind, count, value = struct.unpack(order + "HHI4s", data[at + 2 + 12 * i : at + 14 + 12 * i])
        if tag in (256, 257, 258, 277):
            form = order + ("H2x" if kind == 3 else "I")
            if kind == 3 and count > 2:  # the numbers are elsewhere
                place = struct.unpack(order + "I", value)[0]
                value = bytes(data[place : place + 4])
            found[tag] = struct.unpack(form, value)[0]
    if not {256, 257} <= found.keys():
        raise content.error("not a readable image, a TIFF without its size", at)
    return found[256] * found[257] * 2 * max(found[277], 4) * max(-(-found[258] // 8), 1)


def _jpeg2000(content: Content, data: bytes) -> int:
    at = data.find(b"\xff\x4f\xff\x51")  # the marker of the size, right after that of the begin
    if at < 0:
        raise content.error("not a readable image, a JPEG 2000 file without the marker of its size")
    width, height, left, top = struct.unpack(">4I", data[at + 8 : at + 24])
    return max(width - left, 0) * max(height - top, 0)


def _boxes(content: Content, data: bytes) -> int:
    sizes = [struct.unpack(">II", data[m.end() + 4 : m.end() + 12]) for m in re.finditer(b"ispe", data)]
    if not sizes:
        raise content.error("not a readable image, an AVIF file without its size")
    return max(width * height for width, height in sizes)


__all__ = ["MAX_SCANS", "memory_of"]
