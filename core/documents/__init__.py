"""Documents as JSON: reading, filtering, encoding."""
