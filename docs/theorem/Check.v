(** The checker: it reads a program, an answer and prices, and says whether they prove the answer optimal. *)

From Coq Require Import QArith Qround Qabs ZArith List Bool Lia Lqa FMapPositive.
From Lagrangian Require Import Numbers Programs Minimum Bound.
Import ListNotations.
Open Scope Q_scope.

(** * An answer given as a list: the first number is variable 1's *)

Fixpoint numbered (k : positive) (given : list Q) (m : PositiveMap.t Q) : PositiveMap.t Q :=
  match given with [] => m | q :: rest => numbered (Pos.succ k) rest (PositiveMap.add k q m) end.

Definition values (given : list Q) : PositiveMap.t Q := numbered 1 given (PositiveMap.empty Q).

(** The answer that the list gives. *)
Definition value (given : list Q) : answer := charge_of (values given).

(** It is what it should be: variable k has the k-th number of the list. *)
Lemma numbered_before given : forall k m j, (j < k)%positive ->
  PositiveMap.find j (numbered k given m) = PositiveMap.find j m.
Proof.
  induction given as [|q rest IH]; intros k m j J; simpl; [reflexivity|].
  rewrite IH by lia. apply PositiveMap.gso. lia.
Qed.

Lemma value_is given n q : nth_error given n = Some q -> value given (Pos.of_succ_nat n) = q.
Proof.
  intro E. unfold value, values, charge_of.
  assert (H : forall given n k m, nth_error given n = Some q ->
    PositiveMap.find (Pos.of_nat (Pos.to_nat k + n)) (numbered k given m) = Some q).
  { clear. induction given as [|a rest IH]; intros [|n] k m E; simpl in *; try discriminate.
    - injection E as ->. rewrite Nat.add_0_r, Pos2Nat.id, numbered_before by lia. apply PositiveMap.gss.
    - rewrite <- (IH n (Pos.succ k) (PositiveMap.add k a m) E). f_equal. lia. }
  replace (Pos.of_succ_nat n) with (Pos.of_nat (Pos.to_nat 1 + n)) by lia. now rewrite H.
Qed.

(** * Feasibility *)

Definition allows_b (x : variable) (v : Q) : bool :=
  above_b (lower x) v && below_b (upper x) v && (negb (whole x) || whole_number v)
  && forallb (fun p => piece_allows_b p v) (pieces x).

Lemma allows_b_true x v : allows_b x v = true -> allows x v.
Proof.
  unfold allows_b. rewrite !andb_true_iff. intros [[[L U] W] P].
  repeat split; [now apply above_b_true | now apply below_b_true | |].
  - intro X. rewrite X in W. now apply whole_number_true.
  - apply Forall_forall. intros p In. rewrite forallb_forall in P. apply piece_allows_b_true. auto.
Qed.

(** The first variable whose value is not allowed. *)
Fixpoint wrong_variable (k : positive) (xs : list variable) (m : PositiveMap.t Q) : option positive :=
  match xs with
  | [] => None
  | x :: rest => if allows_b x (charge_of m k) then wrong_variable (Pos.succ k) rest m else Some k
  end.

Lemma no_wrong_variable m : forall xs k, wrong_variable k xs m = None -> all_allow k xs (charge_of m).
Proof.
  induction xs as [|x xs IH]; simpl; intros k E; [exact I|].
  destruct (allows_b x (charge_of m k)) eqn:A; [|discriminate]. auto using allows_b_true.
Qed.

Fixpoint activity_at (es : list (positive * Q)) (m : PositiveMap.t Q) (so_far : Q) : Q :=
  match es with
  | [] => so_far
  | (k, a) :: rest => activity_at rest m (add so_far (mul a (charge_of m k)))
  end.

Lemma activity_at_is m : forall es so_far, activity_at es m so_far == so_far + activity es (charge_of m).
Proof.
  induction es as [|[k a] es IH]; intro so_far; simpl; [ring|]. rewrite IH, add_is, mul_is. ring.
Qed.

(** The first row that is broken. *)
Fixpoint wrong_row (k : positive) (rs : list row) (m : PositiveMap.t Q) : option positive :=
  match rs with
  | [] => None
  | r :: rest =>
      let act := activity_at (entries r) m 0 in
      if above_b (least r) act && below_b (most r) act then wrong_row (Pos.succ k) rest m else Some k
  end.

Lemma no_wrong_row m : forall rs k,
  wrong_row k rs m = None -> Forall (fun r => holds r (charge_of m)) rs.
Proof.
  induction rs as [|r rs IH]; simpl; intros k E; [constructor|].
  destruct (above_b _ _ && below_b _ _) eqn:H; [|discriminate]. constructor; [|eauto].
  apply andb_true_iff in H. destruct H as [L U]. apply above_b_true in L. apply below_b_true in U.
  assert (A : activity_at (entries r) m 0 == activity (entries r) (charge_of m))
    by (rewrite activity_at_is; ring).
  split; [destruct (least r) | destruct (most r)]; simpl in *; try exact I; now rewrite <- A.
Qed.

Fixpoint cost_from (k : positive) (xs : list variable) (m : PositiveMap.t Q) (so_far : Q) : Q :=
  match xs with
  | [] => so_far
  | x :: rest => cost_from (Pos.succ k) rest m (add so_far (cost_at (pieces x) (charge_of m k)))
  end.

Lemma cost_from_is m : forall xs k so_far,
  cost_from k xs m so_far == so_far + total_cost k xs (charge_of m).
Proof.
  induction xs as [|x xs IH]; intros k so_far; simpl; [ring|]. rewrite IH, add_is, cost_at_is. ring.
Qed.

(** * The verdict *)

Inductive verdict : Type :=
| Malformed                                   (** a row names a variable that does not exist, or a wrong
                                                  number of values or prices *)
| Breaks_variable (k : positive)              (** the answer is not feasible: the k-th variable *)
| Breaks_row (k : positive)                   (** the answer is not feasible: the k-th row *)
| Unproved (cost : Q) (b : bounded)           (** feasible, at this cost; the prices prove this bound *)
| Proved (cost : Q) (b : bounded).            (** optimal *)

Definition reaches (cost : Q) (b : bounded) : bool :=
  match b with At b => at_most cost b | _ => false end.

Definition judge (p : program) (given prices : list Q) : verdict :=
  if in_range p && Z.eqb (count given 0) (count (variables p) 0)
     && Z.eqb (count prices 0) (count (rows p) 0) then
    let m := values given in
    match wrong_variable 1 (variables p) m with
    | Some k => Breaks_variable k
    | None =>
        match wrong_row 1 (rows p) m with
        | Some k => Breaks_row k
        | None =>
            let cost := cost_from 1 (variables p) m 0 in
            let b := bound p prices in
            if reaches cost (rounded p b) then Proved cost b else Unproved cost b
        end
    end
  else Malformed.

Definition check (p : program) (given prices : list Q) : bool :=
  match judge p given prices with Proved _ _ => true | _ => false end.

(** What the checker calls proved is optimal, and the cost that it prints is the objective. *)
Theorem judge_is_right p given prices cost b :
  judge p given prices = Proved cost b ->
  optimal p (value given) /\ cost == objective p (value given).
Proof.
  unfold judge. destruct (_ && _ && _); [|discriminate].
  destruct (wrong_variable _ _ _) eqn:V; [discriminate|].
  destruct (wrong_row _ _ _) eqn:R; [discriminate|].
  destruct (reaches _ _) eqn:E; [|discriminate]. intro J. injection J as C B.
  apply no_wrong_variable in V. apply no_wrong_row in R.
  assert (Cost : cost == objective p (value given)).
  { rewrite <- C. unfold objective, value. rewrite cost_from_is. ring. }
  split; [|exact Cost]. split; [split; assumption|]. intros w W.
  rewrite C, B in E.
  pose proof (rounded_bounds p (bound p prices) w W (bound_is_a_bound p prices w W)) as L.
  rewrite B in L. destruct (rounded p b) as [|r|]; simpl in *; try discriminate.
  apply at_most_true in E. lra.
Qed.

Theorem check_is_right p given prices : check p given prices = true -> optimal p (value given).
Proof.
  unfold check. destruct (judge p given prices) eqn:J; intro E; try discriminate.
  now apply judge_is_right in J.
Qed.

(** If it says otherwise of a feasible answer, cost and bound are right all the same. *)
Theorem unproved_is_right p given prices cost b :
  judge p given prices = Unproved cost b ->
  feasible p (value given) /\ cost == objective p (value given)
  /\ forall w, feasible p w -> bounds b (objective p w).
Proof.
  unfold judge. destruct (_ && _ && _); [|discriminate].
  destruct (wrong_variable _ _ _) eqn:V; [discriminate|].
  destruct (wrong_row _ _ _) eqn:R; [discriminate|].
  destruct (reaches _ _) eqn:E; [discriminate|]. intro J. injection J as C B.
  apply no_wrong_variable in V. apply no_wrong_row in R. repeat split; try assumption.
  - rewrite <- C. unfold objective, value. rewrite cost_from_is. ring.
  - intros w W. rewrite <- B. now apply bound_is_a_bound.
Qed.
