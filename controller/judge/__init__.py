"""Runs to belief to verdict (pure statistics)."""
