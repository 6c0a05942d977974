"""How answers are proved: the door by which every number enters."""
