"""Outcomes to conditions, events and summaries (pure)."""
