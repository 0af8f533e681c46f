"""Fleet manifests from files."""
