"""Where the loop lives: the embedded process, its settings and its wiring."""
