"""Ports of this host."""

from __future__ import annotations

import socket

import pytest

from dualmx.core import net


def test_a_free_port_is_given_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", net.free_port("127.0.0.1"))) as taken:
        port = taken.getsockname()[1]
        assert port in net._PORTS
        monkeypatch.setattr(net.random.SystemRandom, "sample", lambda self, ports, count: [port, port - 1])
        assert net.free_port("127.0.0.1") == port - 1
        monkeypatch.setattr(net.random.SystemRandom, "sample", lambda self, ports, count: [port] * count)
        assert net.free_port("127.0.0.1") not in (0, port)  # any
    with pytest.raises(OSError, match="Cannot assign requested address"):
        net.free_port("192.0.2.1")
