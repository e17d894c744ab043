# Not run.
