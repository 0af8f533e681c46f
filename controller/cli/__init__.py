"""What a person types: parses, calls, prints; decides nothing."""
