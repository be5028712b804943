"""Addresses of this host."""

from __future__ import annotations

import errno
import ipaddress
import random
import socket
import struct

from .errors import ArgumentError

_PORTS = range(10000, 32768)  # below those that systems give to connections that go out
_OUTSIDE = "10.255.255.255"  # any address outside shows the way to other hosts; it is not asked


def is_loopback(host: str) -> bool:
    """Whether `host` is an address that only this host reaches."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def free_port(host: str) -> int:
    """Return a free port of this host.

    It is none of those that the system gives to connections that go out and to whoever wants any port: one of these
    may be taken before it is used.

    Raises:
        OSError: `host` is no address of this host.
    """
    for port in (*random.SystemRandom().sample(_PORTS, 100), 0):
        with socket.socket() as s:
            try:
                s.bind((host, port))
                return s.getsockname()[1]
            except OSError as e:
                if e.errno != errno.EADDRINUSE or not port:
                    raise
    raise AssertionError("unreachable")


def address_of(interfaces: str) -> str:
    """Return the IPv4 address of a network interface; of several names with commas between, the first that has one.

    Raises:
        ArgumentError: there is none; the message lists the interfaces of this host.
    """
    for name in interfaces.split(","):
        try:
            import fcntl

            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                packed = fcntl.ioctl(s.fileno(), 0x8915, struct.pack("256s", name.strip().encode()[:15]))  # SIOCGIFADDR
            return socket.inet_ntoa(packed[20:24])
        except (ImportError, OSError):
            continue
    known = ", ".join(name for _, name in socket.if_nameindex())
    raise ArgumentError(f"DMLC_INTERFACE={interfaces!r}: no interface with an address; there are {known}")


def route_to(host: str = _OUTSIDE) -> str:
    """Return the address of this host as `host` sees it; empty if there is no way there."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.connect((host, 9))  # sends nothing: asks the system for the route
            return s.getsockname()[0]
    except OSError:
        return ""


__all__ = ["address_of", "free_port", "is_loopback", "route_to"]
