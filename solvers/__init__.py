"""How it is made optimal."""
