"""The nouns that cross room borders, and the manifest (pure)."""
