"""The values everything is made of: fingerprints, schemes, recipes, seals."""
