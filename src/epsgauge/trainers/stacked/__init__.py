"""Many models at once: K of them trained together as batched tensor operations, each with its own data and streams."""
