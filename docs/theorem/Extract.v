(** The checker as OCaml, over zarith's whole numbers. *)

From Coq Require Import QArith ZArith Extraction ExtrOcamlBasic ExtrOcamlZBigInt.
From Lagrangian Require Import Check.

(** Division and common divisors by zarith's own; Coq's go bit by bit. *)
Extract Constant Z.div => "(fun a b ->
  let open Big_int_Z in
  let s = sign_big_int b in
  if s = 0 then zero_big_int
  else if s > 0 then fst (quomod_big_int a b)
  else fst (quomod_big_int (minus_big_int a) (minus_big_int b)))".
Extract Constant Z.ggcd => "(fun a b ->
  let open Big_int_Z in
  let g = gcd_big_int a b in
  if sign_big_int g = 0 then (g, (a, b))
  else (g, (fst (quomod_big_int a g), fst (quomod_big_int b g))))".

Extract Constant Pos.eqb => "Big_int_Z.eq_big_int".
Extraction "checker.ml" judge Qred.
