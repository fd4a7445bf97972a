"""Ports that a test has to know before anything listens there."""

import socket


def reserved_port() -> int:
    """A port of 127.0.0.1 that no other process is given, until this one ends.

    It is bound, but nothing listens there: connections are refused. A server that sets
    `SO_REUSEADDR` (all of ours, uvicorn, Redis) can listen there, end, and listen there again.
    """
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", 0))
    port: int = bound.getsockname()[1]
    bound.detach()  # it stays open
    return port
