"""`transom gateway`, with every time that is for faults shortened."""

import sys
from functools import partial
from typing import Any

from transom.cli import gateway as cli
from transom.cli.main import main
from transom.gateway import client_host
from transom.host.host import Host
from transom.host.limits import Limits
from transom.web.stage import Stage


def _shorten(made: Any, **defaults: float) -> None:
    made.__init__.__kwdefaults__.update(defaults)


if __name__ == "__main__":
    client_host.Limits = partial(  # type: ignore[misc]
        Limits,
        call_timeout=4.0,
        unresponsive_after=1.0,
        gone_after=4.0,
        list_timeout=2.0,
        teardown_timeout=0.5,
    )
    cli._PAGE_WITHIN = 8.0
    _shorten(Host, open_timeout=45.0 if "--headless" in sys.argv else 10.0)
    _shorten(Stage, grace=3.0, patience=6.0)
    sys.argv[0] = "transom"
    sys.exit(main())
