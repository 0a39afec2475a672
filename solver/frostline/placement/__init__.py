"""Which server holds which replica: placement methods, and free GPUs."""
