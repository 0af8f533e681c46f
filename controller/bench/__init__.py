"""Rented instances over SSH: session, host-key pinning, workloads, runs, log readers."""
