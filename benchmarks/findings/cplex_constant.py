"""CPLEX calls an answer optimal that costs 5 % too much: its tolerance is relative to a large constant.

minimize Σ (xᵢ − cᵢ)² with 0 ≤ xᵢ ≤ s and Σ xᵢ = s. Expanded, the objective has the constant
Σ cᵢ² = 4.5 · 10¹⁰; the optimum, 1369/8, is small beside it.
"""

import cplex

FINDING = {
    "solver": "CPLEX", "package": "cplex", "first seen": "22.2.0.0",
    "says": "180.16 is optimal; the optimum is 171.125",
    "option": "barrier.convergetol=1e-8, its own, relative to a constant of 4.5 · 10¹⁰: as documented",
    "workaround": "barrier.convergetol=1e-12, or an objective without the constant",
}  # fmt: skip
TARGET, TOTAL = [36.0, 74_811, 10_325, 46_300, 192_382, 4_651, 722, 7_586], 336_776.0


def solved(tolerance):
    problem = cplex.Cplex()
    problem.parameters.barrier.convergetol.set(tolerance)
    problem.variables.add(obj=[-2 * one for one in TARGET], ub=[TOTAL] * 8)
    problem.objective.set_quadratic([2.0] * 8)
    problem.objective.set_offset(sum(one * one for one in TARGET))
    problem.linear_constraints.add([[list(range(8)), [1.0] * 8]], senses="E", rhs=[TOTAL])
    problem.solve()
    pairs = zip(problem.solution.get_values(), TARGET, strict=True)
    return problem.solution.get_status_string(), sum((x - one) ** 2 for x, one in pairs)


def still():
    return solved(1e-8)[1] > 172


if __name__ == "__main__":
    print(f"tolerance 1e-8: {solved(1e-8)}; tolerance 1e-12: {solved(1e-12)}; optimum 171.125")
