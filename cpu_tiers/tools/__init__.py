"""What people run: the commands, and what only commands need."""
