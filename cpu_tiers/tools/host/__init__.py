"""The commands about one host: show, audit and watch."""
