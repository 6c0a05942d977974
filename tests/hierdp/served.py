"""What child processes run in tests of their import path."""

from importlib import import_module


def imports(line):
    """Import the modules whose names are received; answer with their files."""
    line.send([str(import_module(name).__file__) for name in line.recv()])
