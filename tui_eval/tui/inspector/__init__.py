"""The tabs of the Case screen, one module each."""
