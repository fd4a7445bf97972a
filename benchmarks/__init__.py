"""How fast Transom is, beside its peers: `make bench`."""

import os

# What is installed has its bytecode. Programs started here should not compile theirs every time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
