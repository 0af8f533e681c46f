"""What we own and what we measured, in SQLite."""
