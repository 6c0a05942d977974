"""HiGHS calls an answer optimal that costs twice the optimum, with a bound to match.

minimize max |x − v| with Σ x = 21,820,548 over whole numbers: four counts and their largest change. The sum
of v is 21,820,550, so that two counts change by one, and the optimum is 1.
HiGHS 1.15.1 finds it here; it called 2 optimal for 52 counts with this tolerance.
"""

import highspy

FINDING = {
    "solver": "HiGHS", "package": "highspy", "first seen": "1.16.0",
    "says": "2 is optimal, with the bound 2; the optimum is 1",
    "option": "mip_feasibility_tolerance=1e-9 (its own is 1e-6)",
    "workaround": "leave the tolerance at 1e-6; it is absolute, and the counts have eight digits",
}  # fmt: skip
V, TOTAL = [231047, 1357934, 4231569, 16000000], 21820548


def solved(tolerance, presolve):
    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("mip_feasibility_tolerance", tolerance)
    highs.setOptionValue("presolve", presolve)
    highs.setOptionValue("mip_rel_gap", 0.0)
    for _ in V:
        highs.addVar(0, TOTAL)
    highs.addVar(0, TOTAL)
    highs.changeColsIntegrality(5, list(range(5)), [highspy.HighsVarType.kInteger] * 5)
    highs.changeColCost(4, 1.0)
    for j, v in enumerate(V):
        highs.addRow(-highspy.kHighsInf, v, 2, [j, 4], [1.0, -1.0])
        highs.addRow(v, highspy.kHighsInf, 2, [j, 4], [1.0, 1.0])
    highs.addRow(TOTAL, TOTAL, 4, [0, 1, 2, 3], [1.0] * 4)
    highs.run()
    return (
        highs.modelStatusToString(highs.getModelStatus()),
        highs.getObjectiveValue(),
        highs.getInfo().mip_dual_bound,
    )


def still():
    return solved(1e-9, "choose")[1] > 1.5


if __name__ == "__main__":
    for tolerance, presolve in ((1e-9, "choose"), (1e-9, "off"), (1e-6, "choose")):
        status, cost, bound = solved(tolerance, presolve)
        print(f"tolerance {tolerance:g}, presolve {presolve}: {status}, cost {cost:g}, bound {bound:g}")
