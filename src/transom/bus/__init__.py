"""Workers that share users: leases, channels from worker to worker, records, by way of Redis.

`transom[bus]` installs what it takes. Nothing imports this package unless a bus is asked for.
"""

from transom.bus.bus import Bus, Lease
from transom.bus.forwarding import forward, serve_forwarded

__all__ = ["Bus", "Lease", "forward", "serve_forwarded"]
