"""Evals: how often a model finds and uses the tools of a View, as `transom eval` counts it."""
