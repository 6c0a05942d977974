(** The theorem: any prices of a program's rows give a lower bound on the cost of every feasible answer. *)

From Coq Require Import QArith Qround Qabs ZArith List Bool Lia Lqa FMapPositive.
From Lagrangian Require Import Numbers Programs Minimum.
Import ListNotations.
Open Scope Q_scope.

(** * What a row is paid *)

(** The price times the side that is paid for: the lower one for a positive price, the upper one for a
    negative price; [None] if that side is infinite. *)
Definition paid (r : row) (y : Q) : option Q :=
  if negb (at_most y 0) then option_map (mul y) (least r)
  else if negb (at_most 0 y) then option_map (mul y) (most r)
  else Some 0.

Lemma paid_at_most r y s v : holds r v -> paid r y = Some s -> s <= y * activity (entries r) v.
Proof.
  intros [Lo Hi]. unfold paid. set (act := activity (entries r) v) in *.
  compare y 0; simpl negb; [compare 0 y; simpl negb|].
  - intro S. injection S as <-. assert (y == 0) as -> by lra. lra.
  - destruct (most r) as [u|]; simpl in *; intro S; [injection S as <-|discriminate].
    rewrite mul_is. assert (0 <= - y * (u - act)) by (apply Qmult_le_0_compat; lra). lra.
  - destruct (least r) as [l|]; simpl in *; intro S; [injection S as <-|discriminate].
    rewrite mul_is. assert (0 <= y * (act - l)) by (apply Qmult_le_0_compat; lra). lra.
Qed.

(** One price for each row; [None] also if there are more or fewer. *)
Fixpoint all_paid (rs : list row) (ys : list Q) (so_far : Q) : option Q :=
  match rs, ys with
  | [], [] => Some so_far
  | r :: rs, y :: ys =>
      match paid r y with Some s => all_paid rs ys (add so_far s) | None => None end
  | _, _ => None
  end.

(** Σ price · row. *)
Fixpoint priced (rs : list row) (ys : list Q) (v : answer) : Q :=
  match rs, ys with
  | r :: rs, y :: ys => y * activity (entries r) v + priced rs ys v
  | _, _ => 0
  end.

Lemma all_paid_at_most v : forall rs ys so_far s,
  Forall (fun r => holds r v) rs -> all_paid rs ys so_far = Some s -> s <= so_far + priced rs ys v.
Proof.
  induction rs as [|r rs IH]; intros [|y ys] so_far s All E; simpl in *; try discriminate.
  { injection E as <-. lra. }
  inversion All as [|? ? H Rest]; subst.
  destruct (paid r y) as [t|] eqn:T; [|discriminate].
  pose proof (paid_at_most r y t v H T). specialize (IH ys _ s Rest E). rewrite add_is in IH. lra.
Qed.

(** * What each variable is charged: Σ price · coefficient over its rows *)

Definition charges : Type := PositiveMap.t Q.

Definition charge_of (m : charges) (k : positive) : Q :=
  match PositiveMap.find k m with Some q => q | None => 0 end.

Fixpoint charge_entries (y : Q) (es : list (positive * Q)) (m : charges) : charges :=
  match es with
  | [] => m
  | (k, a) :: rest => charge_entries y rest (PositiveMap.add k (add (charge_of m k) (mul y a)) m)
  end.

Fixpoint charge_rows (rs : list row) (ys : list Q) (m : charges) : charges :=
  match rs, ys with
  | r :: rs, y :: ys =>
      charge_rows rs ys (if Qeq_bool y 0 then m else charge_entries y (entries r) m)
  | _, _ => m
  end.

(** Σ charge · variable, over the variables from number k on. *)
Fixpoint charged (k : positive) (xs : list variable) (m : charges) (v : answer) : Q :=
  match xs with [] => 0 | _ :: rest => charge_of m k * v k + charged (Pos.succ k) rest m v end.

(** Whether number j is one of the variables from number k on. *)
Definition among (k : positive) (xs : list variable) (j : positive) : Prop :=
  (Zpos k <= Zpos j < Zpos k + Z.of_nat (length xs))%Z.

Lemma charged_before xs : forall k j q m v, (Zpos j < Zpos k)%Z ->
  charged k xs (PositiveMap.add j q m) v == charged k xs m v.
Proof.
  induction xs as [|x xs IH]; intros k j q m v J; simpl; [reflexivity|].
  rewrite IH by lia. unfold charge_of. rewrite PositiveMap.gso by lia. reflexivity.
Qed.

Lemma charged_add xs : forall k j q m v, among k xs j ->
  charged k xs (PositiveMap.add j (add (charge_of m j) q) m) v == charged k xs m v + q * v j.
Proof.
  unfold among. induction xs as [|x xs IH]; intros k j q m v J; simpl length in J; simpl charged; [lia|].
  destruct (Pos.eq_dec j k) as [<-|N].
  - rewrite charged_before by lia. unfold charge_of at 1. rewrite PositiveMap.gss, add_is. ring.
  - rewrite IH by lia. unfold charge_of at 1. rewrite PositiveMap.gso by auto.
    fold (charge_of m k). ring.
Qed.

Lemma charged_entries xs y v : forall es m,
  Forall (fun e => among 1 xs (fst e)) es ->
  charged 1 xs (charge_entries y es m) v == charged 1 xs m v + y * activity es v.
Proof.
  induction es as [|[j a] es IH]; intros m All; simpl; [ring|].
  inversion All as [|? ? J Rest]; subst. simpl in J.
  rewrite IH by exact Rest. rewrite charged_add by exact J. rewrite mul_is. ring.
Qed.

Lemma charged_rows xs v : forall rs ys m,
  Forall (fun r => Forall (fun e => among 1 xs (fst e)) (entries r)) rs ->
  charged 1 xs (charge_rows rs ys m) v == charged 1 xs m v + priced rs ys v.
Proof.
  induction rs as [|r rs IH]; intros [|y ys] m All; simpl; try ring.
  inversion All as [|? ? R Rest]; subst. rewrite IH by exact Rest.
  destruct (Qeq_bool y 0) eqn:Y.
  - apply Qeq_bool_iff in Y. rewrite Y. ring.
  - rewrite charged_entries by exact R. ring.
Qed.

Lemma charged_nothing v : forall xs k, charged k xs (PositiveMap.empty Q) v == 0.
Proof.
  induction xs as [|x xs IH]; intro k; simpl; [reflexivity|]. rewrite IH. unfold charge_of.
  rewrite PositiveMap.gempty. ring.
Qed.

(** * The sum of the variables' minima *)

Definition plus (a b : bounded) : bounded :=
  match a, b with
  | Empty, _ | _, Empty => Empty
  | Nothing, _ | _, Nothing => Nothing
  | At a, At b => At (add a b)
  end.

Lemma plus_bounds a b c d : bounds a c -> bounds b d -> bounds (plus a b) (c + d).
Proof. destruct a as [|a|], b as [|b|]; simpl; try tauto. rewrite add_is. lra. Qed.

Fixpoint least_total (k : positive) (xs : list variable) (m : charges) (so_far : bounded) : bounded :=
  match xs with
  | [] => so_far
  | x :: rest => least_total (Pos.succ k) rest m (plus so_far (minimum x (charge_of m k)))
  end.

Lemma least_total_bounds m v : forall xs k so_far cost,
  all_allow k xs v -> bounds so_far cost ->
  bounds (least_total k xs m so_far) (cost + (total_cost k xs v - charged k xs m v)).
Proof.
  induction xs as [|x xs IH]; intros k so_far cost All B; simpl in *.
  { apply (bounds_same _ cost); [ring | exact B]. }
  destruct All as [A Rest].
  pose proof (minimum_is_a_bound x (charge_of m k) (v k) A) as M.
  eapply bounds_same; [|exact (IH _ _ _ Rest (plus_bounds _ _ _ _ B M))]. ring.
Qed.

(** * The bound *)

Fixpoint count {A : Type} (xs : list A) (so_far : Z) : Z :=
  match xs with [] => so_far | _ :: rest => count rest (so_far + 1) end.

Lemma count_is {A : Type} (xs : list A) : forall so_far, count xs so_far = (so_far + Z.of_nat (length xs))%Z.
Proof. induction xs as [|x xs IH]; intro so_far; simpl count; simpl length; [lia|]. rewrite IH. lia. Qed.

Definition in_range (p : program) : bool :=
  let n := count (variables p) 0 in
  forallb (fun r => forallb (fun e => Z.leb (Zpos (fst e)) n) (entries r)) (rows p).

Lemma in_range_is p : in_range p = true ->
  Forall (fun r => Forall (fun e => among 1 (variables p) (fst e)) (entries r)) (rows p).
Proof.
  unfold in_range. intro R. rewrite forallb_forall in R. apply Forall_forall. intros r In.
  apply Forall_forall. intros e Ie. specialize (R r In). rewrite forallb_forall in R.
  specialize (R e Ie). apply Z.leb_le in R. rewrite count_is in R. unfold among. lia.
Qed.

Definition bound (p : program) (ys : list Q) : bounded :=
  if in_range p then
    match all_paid (rows p) ys 0 with
    | Some s => least_total 1 (variables p) (charge_rows (rows p) ys (PositiveMap.empty Q)) (At s)
    | None => Nothing
    end
  else Nothing.

(** The Lagrangian bound: for any prices of the rows, no feasible answer costs less. *)
Theorem bound_is_a_bound p ys v : feasible p v -> bounds (bound p ys) (objective p v).
Proof.
  intros [All Rows]. unfold bound. destruct (in_range p) eqn:R; [|exact I].
  destruct (all_paid (rows p) ys 0) as [s|] eqn:S; [|exact I].
  pose proof (all_paid_at_most v _ _ _ _ Rows S) as Paid.
  set (m := charge_rows (rows p) ys (PositiveMap.empty Q)).
  assert (C : charged 1 (variables p) m v == priced (rows p) ys v).
  { unfold m. rewrite charged_rows, charged_nothing by now apply in_range_is. ring. }
  assert (B : bounds (At s) (priced (rows p) ys v)) by (simpl; lra).
  pose proof (least_total_bounds m v (variables p) 1 (At s) _ All B) as L.
  eapply bounds_same; [|exact L]. unfold objective. rewrite C. ring.
Qed.

(** An answer whose cost equals the bound is optimal. *)
Corollary equal_is_optimal p ys v b :
  feasible p v -> bound p ys = At b -> objective p v == b -> optimal p v.
Proof.
  intros F B E. split; [exact F|]. intros w W.
  pose proof (bound_is_a_bound p ys w W) as L. rewrite B in L. simpl in L. rewrite E. exact L.
Qed.

(** * Whole costs: then the bound can be rounded up *)

Definition whole_piece (x : variable) (p : piece) : bool :=
  match p with
  | Linear w => Qeq_bool w 0 || whole x && whole_number w
  | Square w c | Absolute w c => whole x && whole_number w && whole_number c
  | Table _ costs => forallb whole_number costs
  end.

Definition whole_costs (p : program) : bool :=
  forallb (fun x => forallb (whole_piece x) (pieces x)) (variables p).

Lemma entry_in costs : forall k c, entry costs k = Some c -> In c costs.
Proof.
  induction costs as [|d costs IH]; simpl; intros k c E; [discriminate|].
  destruct (Z.eqb k 0); [injection E as ->; now left | right; eauto].
Qed.

Lemma whole_piece_is x p v : (whole x = true -> is_whole v) -> whole_piece x p = true ->
  is_whole (piece_cost p v).
Proof.
  intros K W. destruct p as [w|w c|w c|first costs]; cbn [piece_cost whole_piece] in *.
  - apply orb_true_iff in W. destruct W as [Z|W].
    + apply Qeq_bool_iff in Z. exists 0%Z. rewrite Z. change (inject_Z 0) with 0. ring.
    + apply andb_true_iff in W. destruct W as [X W]. apply whole_mul; auto using whole_number_true.
  - rewrite !andb_true_iff in W. destruct W as [[X W] C]. apply whole_number_true in W, C.
    specialize (K X). assert (is_whole (v - c)) by (apply whole_add; auto using whole_opp).
    apply whole_mul; auto using whole_mul.
  - rewrite !andb_true_iff in W. destruct W as [[X W] C]. apply whole_number_true in W, C.
    specialize (K X). apply whole_mul; auto. apply whole_abs, whole_add; auto using whole_opp.
  - destruct (entry costs _) as [c|] eqn:E; [|now exists 0%Z].
    rewrite forallb_forall in W. apply whole_number_true, W. eauto using entry_in.
Qed.

Lemma whole_objective p v : whole_costs p = true -> feasible p v -> is_whole (objective p v).
Proof.
  unfold whole_costs, objective. intros W [All _]. revert W All. generalize 1%positive.
  induction (variables p) as [|x xs IH]; simpl; intros k W All; [now exists 0%Z|].
  apply andb_true_iff in W. destruct W as [W Ws], All as [A As]. apply whole_add; [|auto].
  destruct A as (_ & _ & K & _). revert W. induction (pieces x) as [|q qs IHq]; simpl; intro W; [now exists 0%Z|].
  apply andb_true_iff in W. destruct W as [Q Qs]. apply whole_add; eauto using whole_piece_is.
Qed.

(** The bound, rounded up if every feasible answer has a whole cost. *)
Definition rounded (p : program) (b : bounded) : bounded :=
  match b with At b => At (if whole_costs p then inject_Z (Qceiling b) else b) | other => other end.

Lemma rounded_bounds p b v : feasible p v -> bounds b (objective p v) -> bounds (rounded p b) (objective p v).
Proof.
  intro F. destruct b as [|b|]; simpl; auto. destruct (whole_costs p) eqn:W; [|auto].
  intro L. destruct (whole_objective p v W F) as [z Z]. rewrite Z in *. now apply inject_le, ceiling_le.
Qed.
