"""The index that a command works on: its recipe, its engine, its pipeline."""
