(** Every theorem that the README lists, and what it assumes: nothing. *)

From Lagrangian Require Import Programs Minimum Bound Check Certificates Words.

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
Print Assumptions constrained_inference_bound.
Print Assumptions constrained_inference_certificate.
Print Assumptions unit_costs_least.
Print Assumptions clustering_certificate.
Print Assumptions segmentation_certificate.
Print Assumptions chebyshev_certificate.
Print Assumptions gentle_pairs.
Print Assumptions group_matching_certificate.
Print Assumptions group_matching_bound.
Print Assumptions group_matching_optimal.
Print Assumptions reach_is_a_bound.
Print Assumptions guarded_is_exact.
Print Assumptions arrays_are_exact.
Print Assumptions computed_is_exact.
Print Assumptions sum_is_exact.
Print Assumptions sum_of_expressions.
Print Assumptions products_are_exact.
Print Assumptions squares_are_exact.
Print Assumptions segments_are_exact.
Print Assumptions prefix_sums_are_exact.
Print Assumptions cells_are_exact.
Print Assumptions cells_weigh_no_more.
Print Assumptions blocks_are_exact.
Print Assumptions dot_in_blocks_is_exact.
Print Assumptions split_dot.
Print Assumptions distance_is_exact.
Print Assumptions or_bounds_sum.
