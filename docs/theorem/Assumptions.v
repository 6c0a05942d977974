(** Every theorem that the README lists, and what it assumes: nothing. *)

From Lagrangian Require Import Programs Minimum Bound Check Certificates.

Print Assumptions minimum_is_a_bound.
Print Assumptions minimum_is_attained.
Print Assumptions bound_is_a_bound.
Print Assumptions equal_is_optimal.
Print Assumptions rounded_bounds.
Print Assumptions check_is_right.
Print Assumptions judge_is_right.
Print Assumptions unproved_is_right.
Print Assumptions certificate_optimal.
Print Assumptions complementary_optimal.
Print Assumptions cost_table_certificate.
Print Assumptions isotonic_certificate.
Print Assumptions constrained_inference_certificate.
Print Assumptions unit_costs_least.
Print Assumptions clustering_certificate.
Print Assumptions chebyshev_certificate.
Print Assumptions gentle_pairs.
Print Assumptions group_matching_certificate.
