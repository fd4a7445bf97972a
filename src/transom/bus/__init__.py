"""What workers share through Redis: leases, channels from worker to worker, and records.

`transom[bus]` installs what it needs. Nothing imports this package unless a bus is used.
"""

from transom.bus.bus import Bus, Lease
from transom.bus.forwarding import forward, serve_forwarded

__all__ = ["Bus", "Lease", "forward", "serve_forwarded"]
