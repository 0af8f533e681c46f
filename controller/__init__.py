"""vastfleet: a controller that holds fleets of rented GPUs on vast.ai."""
