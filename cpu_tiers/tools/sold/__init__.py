"""What of a cloud is sold, what is kept of it, and what is left. Pure."""
