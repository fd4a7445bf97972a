"""Loads a Python file that a user names: a server, a model, a View."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from transom.errors import UsageError


def load_python_file(path: Path) -> ModuleType:
    """Run a file as a module of its own, which finds the modules beside it.

    Whatever the file raises is not caught.

    Raises:
        UsageError: it is not a file of Python.
    """
    name = path.stem if path.stem not in sys.modules else f"transom_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be loaded as Python")
    sys.path.insert(0, str(path.resolve().parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses, pickle and typing look for it
    spec.loader.exec_module(module)
    return module
