"""The command line, one file per command."""

from hierdp.cli.app import main as main
