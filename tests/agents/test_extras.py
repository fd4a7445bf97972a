"""Each framework is an extra: none is loaded unless asked for, and a missing one is named."""

import importlib
import sys

import pytest

ADAPTERS = {
    "pydantic_ai": ("pydantic_ai", "transom[pydantic-ai]"),
    "openai_agents": ("agents", "transom[openai-agents]"),
    "langchain": ("langchain.agents.middleware", "transom[langchain]"),
}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_framework_that_is_missing_is_said_to_be_with_what_to_install(
    adapter: str, monkeypatch: pytest.MonkeyPatch
):
    package, extra = ADAPTERS[adapter]
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"transom.agents.{adapter}", raising=False)
    with pytest.raises(ImportError, match=f"pip install '{extra}'".replace("[", r"\[")):
        importlib.import_module(f"transom.agents.{adapter}")
