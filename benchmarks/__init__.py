"""How fast Transom is, beside its peers: `make bench`."""

import os

# Programs started here keep their bytecode: otherwise each start would compile every module again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
