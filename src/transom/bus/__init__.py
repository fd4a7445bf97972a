"""What workers share through Redis: leases, channels from worker to worker, and records.

`transom[bus]` installs what it needs. Nothing imports this package unless a bus is used.
"""

from transom.bus.bus import Bus, Lease, OnLease
from transom.bus.channels import OnOpen
from transom.bus.forwarding import Application, Receive, Scope, Send, forward, serve_forwarded

__all__ = [
    "Application",
    "Bus",
    "Lease",
    "OnLease",
    "OnOpen",
    "Receive",
    "Scope",
    "Send",
    "forward",
    "serve_forwarded",
]
