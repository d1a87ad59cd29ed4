"""The driver of sans-IO generators, durable files, signals, optional imports."""
