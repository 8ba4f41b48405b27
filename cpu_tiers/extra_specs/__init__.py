"""Text of extra specs and image properties to typed values, and what is valid."""
