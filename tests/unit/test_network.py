"""Ports of this host."""

from __future__ import annotations

import socket

import pytest

from dualmx.core import network


def test_a_free_port_is_given_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", network.free_port("127.0.0.1"))) as taken:
        port = taken.getsockname()[1]
        assert port in network._PORTS
        monkeypatch.setattr(network.random.SystemRandom, "sample", lambda self, ports, count: [port, port - 1])
        assert network.free_port("127.0.0.1") == port - 1
        monkeypatch.setattr(network.random.SystemRandom, "sample", lambda self, ports, count: [port] * count)
        assert network.free_port("127.0.0.1") not in (0, port)  # any
    with pytest.raises(OSError):
        network.free_port("192.0.2.1")
