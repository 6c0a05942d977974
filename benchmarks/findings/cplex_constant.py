"""CPLEX calls an answer optimal that costs 5 % too much: its tolerance is relative to a large constant.

minimize Σ (xᵢ − cᵢ)² with 0 ≤ xᵢ ≤ s and Σ xᵢ = s. Expanded, the objective has the constant
Σ cᵢ² = 4.5 · 10¹⁰; the optimum, 1369/8, is small beside it.
"""

import cplex
import numpy as np

FINDING = {
    "solver": "CPLEX", "package": "cplex", "first seen": "22.2.0.0",
    "says": "180.16 is optimal; the optimum is 171.125",
    "option": "barrier.convergetol=1e-8, its own, relative to a constant of 4.5 · 10¹⁰: as documented",
    "workaround": "barrier.convergetol=1e-12, or an objective without the constant",
}  # fmt: skip
TARGET = np.array([36.0, 74_811, 10_325, 46_300, 192_382, 4_651, 722, 7_586])
TOTAL = 336_776.0


def solved(tolerance):
    size = TARGET.size
    problem = cplex.Cplex()
    for silence in (problem.set_log_stream, problem.set_results_stream, problem.set_warning_stream):
        silence(None)
    problem.parameters.barrier.convergetol.set(tolerance)
    problem.variables.add(obj=(-2 * TARGET).tolist(), lb=[0.0] * size, ub=[TOTAL] * size)
    problem.objective.set_quadratic([2.0] * size)
    problem.objective.set_offset(float(TARGET @ TARGET))
    problem.linear_constraints.add([[list(range(size)), [1.0] * size]], senses="E", rhs=[TOTAL])
    problem.solve()
    x = np.array(problem.solution.get_values())
    return problem.solution.get_status_string(), float(np.sum((x - TARGET) ** 2))


def still():
    return solved(1e-8)[1] > 172


if __name__ == "__main__":
    for tolerance in (1e-8, 1e-12):
        status, cost = solved(tolerance)
        print(f"tolerance {tolerance:g}: {status}, cost {cost:.4f}; optimum 171.125")
