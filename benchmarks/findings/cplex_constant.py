"""CPLEX calls an answer optimal that costs 5 % too much: its tolerance is relative to a large constant.

minimize Σ (xᵢ − cᵢ)² with 0 ≤ xᵢ ≤ s and Σ xᵢ = s. Expanded, the objective has the constant
Σ cᵢ² = 4.5 · 10¹⁰; the optimum, 1369/8, is small beside it.
"""

import cplex
import numpy as np

target = np.array([36.0, 74_811, 10_325, 46_300, 192_382, 4_651, 722, 7_586])
total = 336_776.0
size = target.size
for tolerance in (1e-8, 1e-12):
    problem = cplex.Cplex()
    for silence in (problem.set_log_stream, problem.set_results_stream, problem.set_warning_stream):
        silence(None)
    problem.parameters.barrier.convergetol.set(tolerance)
    problem.variables.add(obj=(-2 * target).tolist(), lb=[0.0] * size, ub=[total] * size)
    problem.objective.set_quadratic([2.0] * size)
    problem.objective.set_offset(float(target @ target))
    problem.linear_constraints.add([[list(range(size)), [1.0] * size]], senses="E", rhs=[total])
    problem.solve()
    x = np.array(problem.solution.get_values())
    status, cost = problem.solution.get_status_string(), float(np.sum((x - target) ** 2))
    print(
        f"CPLEX {problem.get_version()}, tolerance {tolerance:g}: {status}, cost {cost:.4f}; optimum 171.125"
    )
