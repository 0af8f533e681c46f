"""vast.ai over HTTP: wire records, client, faults, pace."""
