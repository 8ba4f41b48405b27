"""What a guest gets of its host."""
