(** A separable program: what an answer is, what it costs, and when it is optimal.

    It mirrors [models.programs.terms.Formulation]: variables with bounds, some of them whole; sparse rows with
    two sides; an objective that is a sum of pieces of single variables. *)

From Coq Require Import QArith Qround Qabs ZArith List.
From Lagrangian Require Import Numbers.
Import ListNotations.
Open Scope Q_scope.

(** A piece of the objective, as a function of one variable v: [weight]·v, [weight]·(v − [center])²,
    [weight]·|v − [center]|, or a table of the costs at the whole numbers from [first] on. *)
Inductive piece : Type :=
| Linear (weight : Q)
| Square (weight center : Q)
| Absolute (weight center : Q)
| Table (first : Z) (costs : list Q).

(** A bound or side is [None] if it is infinite. *)
Record variable : Type := Var
  { lower : option Q; upper : option Q; whole : bool; pieces : list piece }.

(** A row: [least] ≤ Σ coefficient · variable ≤ [most]. Variables are numbered from 1. *)
Record row : Type := Row
  { least : option Q; most : option Q; entries : list (positive * Q) }.

Record program : Type := Make { variables : list variable; rows : list row }.

(** An answer gives every variable a value. (Values beyond the last variable do not matter.) *)
Definition answer : Type := positive -> Q.

Definition above (limit : option Q) (v : Q) : Prop :=
  match limit with None => True | Some l => l <= v end.

Definition below (limit : option Q) (v : Q) : Prop :=
  match limit with None => True | Some u => v <= u end.

(** The k-th entry of a table, from 0 on. *)
Fixpoint entry (costs : list Q) (k : Z) : option Q :=
  match costs with
  | [] => None
  | c :: rest => if Z.eqb k 0 then Some c else entry rest (k - 1)
  end.

(** A table's variable must be a whole number that it has a cost for. *)
Definition piece_allows (p : piece) (v : Q) : Prop :=
  match p with
  | Table first costs => exists z c, v == inject_Z z /\ entry costs (z - first) = Some c
  | _ => True
  end.

Definition piece_cost (p : piece) (v : Q) : Q :=
  match p with
  | Linear w => w * v
  | Square w c => w * ((v - c) * (v - c))
  | Absolute w c => w * Qabs (v - c)
  | Table first costs =>
      match entry costs (Qfloor v - first) with Some c => c | None => 0 end
  end.

Fixpoint cost_of (ps : list piece) (v : Q) : Q :=
  match ps with [] => 0 | p :: rest => piece_cost p v + cost_of rest v end.

Definition allows (x : variable) (v : Q) : Prop :=
  above (lower x) v /\ below (upper x) v /\ (whole x = true -> is_whole v)
  /\ Forall (fun p => piece_allows p v) (pieces x).

Fixpoint all_allow (k : positive) (xs : list variable) (v : answer) : Prop :=
  match xs with [] => True | x :: rest => allows x (v k) /\ all_allow (Pos.succ k) rest v end.

Fixpoint total_cost (k : positive) (xs : list variable) (v : answer) : Q :=
  match xs with [] => 0 | x :: rest => cost_of (pieces x) (v k) + total_cost (Pos.succ k) rest v end.

(** The value of a row: Σ coefficient · variable. *)
Fixpoint activity (es : list (positive * Q)) (v : answer) : Q :=
  match es with [] => 0 | (k, a) :: rest => a * v k + activity rest v end.

Definition holds (r : row) (v : answer) : Prop :=
  above (least r) (activity (entries r) v) /\ below (most r) (activity (entries r) v).

Definition feasible (p : program) (v : answer) : Prop :=
  all_allow 1 (variables p) v /\ Forall (fun r => holds r v) (rows p).

Definition objective (p : program) (v : answer) : Q := total_cost 1 (variables p) v.

Definition optimal (p : program) (v : answer) : Prop :=
  feasible p v /\ forall w, feasible p w -> objective p v <= objective p w.

(** A bound: a number, or −∞ (nothing is proved), or +∞ (no answer is feasible). *)
Inductive bounded : Type := Nothing | At (b : Q) | Empty.

Definition bounds (b : bounded) (cost : Q) : Prop :=
  match b with Nothing => True | At b => b <= cost | Empty => False end.
