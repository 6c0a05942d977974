"""The exception of models, or of options of a model, that have no fast path."""


class NoFastPath(Exception):
    """The message names the model, or its option, that has no specialised algorithm."""
