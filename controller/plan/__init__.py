"""Fleet, facts, verdicts and budget to actions, each with its reason (pure)."""
