"""Expected errors of hierarchies, computed without data: variances, branching factors, budgets."""
