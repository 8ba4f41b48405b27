"""What commands share: the program, its arguments, its tables and the names of a cloud."""
