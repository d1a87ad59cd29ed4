"""The conformance kit of languages."""
