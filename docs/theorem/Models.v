(** Models with certificates of their own: runs, cases, matchings, Chebyshev distances. *)

From Coq Require Import QArith Qabs ZArith List Lia Lqa Permutation.
From Lagrangian Require Import Numbers Programs Minimum Certificates.
Import ListNotations.
Open Scope Q_scope.

(** * Clustering, Segmentation, ChangePoints: potentials of places

    A cut is a path of places from a first one to a last one. Its runs lead from each place to the next. *)

Fixpoint path_cost {P : Type} (cost : P -> P -> Q) (first : P) (ends : list P) : Q :=
  match ends with [] => 0 | next :: rest => cost first next + path_cost cost next rest end.

Fixpoint runs {P : Type} (first : P) (ends : list P) : list (P * P) :=
  match ends with [] => [] | next :: rest => (first, next) :: runs next rest end.

Fixpoint last_of {P : Type} (first : P) (ends : list P) : P :=
  match ends with [] => first | next :: rest => last_of next rest end.

Definition sum {P : Type} (f : P -> Q) (places : list P) : Q := fold_right (fun j total => f j + total) 0 places.

Definition slack {P : Type} (cost : P -> P -> Q) (d : P -> Q) (i j : P) : Q := d i - d j + cost i j.

(** Along a cut the slacks add up to its cost less what the potentials say. *)
Lemma slacks_add_up {P : Type} (cost : P -> P -> Q) d : forall ends first,
  path_cost (slack cost d) first ends == path_cost cost first ends - (d (last_of first ends) - d first).
Proof.
  induction ends as [|next rest IH]; intro first; cbn [path_cost last_of]; [ring|]. rewrite IH. unfold slack. ring.
Qed.

(** Where no slack is below 0 by more than [short] of its end, a cut costs at least what the potentials say, less what
    its ends are short of. *)
Theorem cut_is_bounded {P : Type} (cost : P -> P -> Q) d short : forall ends first,
  (forall i j, In (i, j) (runs first ends) -> - short j <= slack cost d i j) ->
  d (last_of first ends) - d first - sum short ends <= path_cost cost first ends.
Proof.
  intros ends first S.
  enough (- sum short ends <= path_cost (slack cost d) first ends) by (rewrite slacks_add_up in *; lra).
  revert first S. induction ends as [|next rest IH]; intros first S; cbn [path_cost sum fold_right]; [lra|].
  pose proof (S first next (or_introl eq_refl)). specialize (IH next (fun i j I => S i j (or_intror I))).
  unfold sum in *. lra.
Qed.

(** And each run of it has at most the slack by which the cut costs more: all others are too far for a cheaper cut. *)
Theorem near_runs_are_all {P : Type} (cost : P -> P -> Q) d short : forall ends first,
  (forall j, 0 <= short j) ->
  (forall i j, In (i, j) (runs first ends) -> - short j <= slack cost d i j) ->
  forall i j, In (i, j) (runs first ends) ->
  slack cost d i j <= path_cost cost first ends - (d (last_of first ends) - d first) + sum short ends.
Proof.
  intros ends first Short S i j I. rewrite <- slacks_add_up. revert first S I.
  induction ends as [|next rest IH]; intros first S I; [destruct I|].
  pose proof (S first next (or_introl eq_refl)) as First. pose proof (Short next) as Next.
  pose proof (cut_is_bounded cost d short rest next (fun i j I => S i j (or_intror I))) as B.
  destruct I as [E|I]; cbn [path_cost sum fold_right]; unfold sum in *.
  - injection E as -> ->. pose proof (slacks_add_up cost d rest j). lra.
  - specialize (IH next (fun i j I => S i j (or_intror I)) I). lra.
Qed.

(** So only cuts of near runs have to be compared with the best one that is known. *)
Corollary near_runs_decide {P : Type} (cost : P -> P -> Q) d short best near first ends :
  (forall j, 0 <= short j) ->
  (forall i j, In (i, j) (runs first ends) -> - short j <= slack cost d i j) ->
  best - (d (last_of first ends) - d first) + sum short ends <= near ->
  ((forall i j, In (i, j) (runs first ends) -> slack cost d i j <= near) -> best <= path_cost cost first ends) ->
  best <= path_cost cost first ends.
Proof.
  intros Short S N Near. destruct (Qlt_le_dec (path_cost cost first ends) best) as [L|L]; [|exact L].
  apply Near. intros i j I. pose proof (near_runs_are_all cost d short ends first Short S i j I). lra.
Qed.

(** Ends are different places: what all places are short of is enough. *)
Lemma each_end_once {P : Type} (short : P -> Q) ends : forall places, (forall j, 0 <= short j) ->
  NoDup ends -> incl ends places -> sum short ends <= sum short places.
Proof.
  intros places Short N. revert places. unfold sum. induction N as [|j ends F N IH]; intros places I; cbn [fold_right].
  - clear - Short. induction places as [|j places IH]; cbn [fold_right]; [lra|]. pose proof (Short j). lra.
  - destruct (in_split j places (I j (or_introl eq_refl))) as (before & after & ->).
    specialize (IH (before ++ after)). rewrite fold_right_app in *. cbn [fold_right].
    assert (M : forall a, fold_right (fun j total => short j + total) (short j + a) before
      == short j + fold_right (fun j total => short j + total) a before).
    { intro a. clear. induction before as [|b before IH]; cbn [fold_right]; [reflexivity|]. rewrite IH. ring. }
    rewrite M. apply Qplus_le_r, IH. intros k K.
    destruct (in_app_or _ _ _ (I k (or_intror K))) as [B|[E|A]]; apply in_or_app; auto.
    subst. contradiction.
Qed.

(** A partition of n values into runs, by their ends. *)
Fixpoint ascending (first : Z) (ends : list Z) : Prop :=
  match ends with [] => True | next :: rest => (first < next)%Z /\ ascending next rest end.

Lemma ascending_runs : forall ends first, ascending first ends ->
  (first <= last_of first ends)%Z /\ NoDup ends /\ (forall j, In j ends -> first < j <= last_of first ends)%Z
  /\ forall i j, In (i, j) (runs first ends) -> (first <= i < j)%Z /\ (j <= last_of first ends)%Z.
Proof.
  induction ends as [|next rest IH]; intros first A; cbn [last_of runs In].
  { repeat split; try constructor; tauto || lia. }
  destruct A as [L A]. destruct (IH _ A) as (U & N & E & R). repeat split; try lia;
    try (destruct H as [H|H]; [injection H as -> ->|apply R in H]; lia); try (destruct H; [|apply E in H]; lia).
  constructor; [intro I; apply E in I; lia | exact N].
Qed.

(** Any number of runs: let d(j) − d(i) ≤ cost(i, j) + short(j) for every run. Each run's price is part of its cost. *)
Theorem clustering_certificate cost d short n places ends :
  (forall j, 0 <= short j) -> (forall j, (0 < j <= n)%Z -> In j places) ->
  (forall i j, (0 <= i < j)%Z -> (j <= n)%Z -> - short j <= slack cost d i j) ->
  ascending 0 ends -> last_of 0%Z ends = n ->
  d n - d 0%Z - sum short places <= path_cost cost 0%Z ends.
Proof.
  intros Short All S A L. destruct (ascending_runs _ _ A) as (_ & N & E & R). rewrite L in *.
  pose proof (each_end_once short ends places Short N (fun j J => All j (E j J))).
  pose proof (cut_is_bounded cost d short ends 0%Z) as B. rewrite L in B.
  specialize (B (fun i j I => S i j (proj1 (R i j I)) (proj2 (R i j I)))). lra.
Qed.

(** k runs: a place is (r, j), the first j values cut into r runs. *)
Fixpoint layered (r : nat) (ends : list Z) : list (nat * Z) :=
  match ends with [] => [] | next :: rest => (S r, next) :: layered (S r) rest end.

Lemma layered_runs : forall ends r first, ascending first ends -> (Z.of_nat r <= first)%Z ->
  last_of (r, first) (layered r ends) = (r + length ends, last_of first ends)%nat
  /\ forall p q, In (p, q) (runs (r, first) (layered r ends)) ->
     fst q = S (fst p) /\ (fst p < r + length ends)%nat /\ (Z.of_nat (fst p) <= snd p < snd q)%Z
     /\ (snd q <= last_of first ends)%Z /\ (r <= fst p)%nat /\ (fst p = r -> snd p = first).
Proof.
  induction ends as [|next rest IH]; intros r first A F; cbn [layered last_of runs length In].
  { split; [f_equal; lia | tauto]. }
  destruct A as [L A]. destruct (IH (S r) next A ltac:(lia)) as [E R]. pose proof (proj1 (ascending_runs _ _ A)).
  split; [rewrite E; f_equal; lia|]. intros p q [I|I]; [injection I as <- <-; simpl; lia|]. apply R in I. lia.
Qed.

(** Only runs are compared that a partition into k runs can have: the r-th begins at r − 1 or later, the first at 0. *)
Theorem segmentation_certificate cost d short n k ends :
  (forall r i j, (r < k)%nat -> (Z.of_nat r <= i < j)%Z -> (j <= n)%Z -> (r = O -> i = 0%Z) ->
    d (S r) j - d r i <= cost i j + short (S r)) ->
  ascending 0 ends -> last_of 0%Z ends = n -> length ends = k ->
  d k n - d O 0%Z - sum short (seq 1 k) <= path_cost cost 0%Z ends.
Proof.
  intros S A L K. destruct (layered_runs ends O 0%Z A ltac:(lia)) as [E R]. simpl in E. rewrite L, K in *.
  pose proof (cut_is_bounded (fun p q => cost (snd p) (snd q)) (fun p => d (fst p) (snd p)) (fun q => short (fst q))
    (layered 0 ends) (O, 0%Z)) as B. rewrite E in B. simpl fst in B. simpl snd in B.
  assert (C : forall ends r first, path_cost (fun p q : nat * Z => cost (snd p) (snd q)) (r, first) (layered r ends)
    = path_cost cost first ends) by (induction ends0 as [|j rest IH]; intros; simpl; [|rewrite IH]; reflexivity).
  assert (T : forall ends r,
    sum (fun q => short (fst q)) (layered r ends) = sum short (seq (Datatypes.S r) (length ends)))
    by (unfold sum; induction ends0 as [|j rest IH]; intros; simpl; [|rewrite IH]; reflexivity).
  rewrite C, T, K in B. apply B. intros [r i] [q j] I. apply R in I. simpl in I.
  destruct I as (-> & I1 & I2 & I3 & _ & I4).
  pose proof (S r i j I1 I2 I3 I4). unfold slack. simpl. lra.
Qed.

(** * CumulativeQIP: a tree of cases *)

(** A case has a bound, or splits into the cases where a whole variable is at most [value], and more. *)
Inductive cases : Type := Case (bound : Q) | Split (cell : positive) (value : Z) (below above : cases).

Fixpoint bounded_cases (t : cases) (inside : answer -> Prop) (cost : answer -> Q) : Prop :=
  match t with
  | Case b => forall w, inside w -> b <= cost w
  | Split j k below above =>
      (forall w, inside w -> is_whole (w j))
      /\ bounded_cases below (fun w => inside w /\ w j <= inject_Z k) cost
      /\ bounded_cases above (fun w => inside w /\ inject_Z k + 1 <= w j) cost
  end.

Fixpoint all_cases (least : Q) (t : cases) : Prop :=
  match t with Case b => least <= b | Split _ _ below above => all_cases least below /\ all_cases least above end.

Theorem cases_are_all cost least : forall t inside, bounded_cases t inside cost -> all_cases least t ->
  forall w, inside w -> least <= cost w.
Proof.
  induction t as [b|j k below Below above Above]; intros inside B L w I; cbn [bounded_cases all_cases] in *.
  - specialize (B w I). lra.
  - destruct B as (W & B & A), L as [Lb La]. destruct (Qlt_le_dec (inject_Z k) (w j)) as [G|G].
    + apply (Above _ A La). split; [exact I|]. apply whole_step; [now exists k | now apply W | exact G].
    + now apply (Below _ B Lb).
Qed.

(** * GroupMatching: potentials that differ by no more than the sizes do *)

(** A run of groups of one size. *)
Record group_run : Type := Run { size : Q; number : Q; potential : Q }.

(** Runs in order of size: neighbours' potentials differ by no more than their sizes. *)
Fixpoint gentle (r : group_run) (runs : list group_run) : Prop :=
  match runs with
  | [] => True
  | s :: rest => Qabs (potential s - potential r) <= size s - size r /\ gentle s rest
  end.

Definition in_order (runs : list group_run) : Prop := match runs with [] => True | r :: rest => gentle r rest end.

(** Then so do those of any two of them. *)
Lemma in_order_pairs runs : in_order runs -> forall s t, In s runs -> In t runs ->
  potential s - potential t <= Qabs (size s - size t).
Proof.
  destruct runs as [|r runs]; [contradiction|]. cbn [in_order].
  assert (First : forall others r s, gentle r others -> In s others ->
    potential s - potential r <= size s - size r /\ potential r - potential s <= size s - size r).
  { induction others as [|q rest IH]; intros p s G I; [destruct I|]. destruct G as [D G].
    apply Qabs_Qle_condition in D. destruct I as [<-|I]; [lra|]. specialize (IH _ _ G I). lra. }
  revert r. induction runs as [|q rest IH]; intros r G s t Is It.
  - destruct Is as [<-|[]], It as [<-|[]]. pose proof (Qabs_nonneg (size r - size r)). lra.
  - destruct Is as [<-|Is], It as [<-|It].
    + pose proof (Qabs_nonneg (size r - size r)). lra.
    + destruct (First _ _ _ G It). pose proof (Qle_Qabs (- (size r - size t))) as A. rewrite Qabs_opp in A. lra.
    + destruct (First _ _ _ G Is). pose proof (Qle_Qabs (size s - size r)). lra.
    + destruct G as [_ G]. exact (IH _ G _ _ Is It).
Qed.

(** How many groups of the parent's i-th run are groups of the children's j-th run. *)
Definition matching (parents children : list group_run) (x : positive -> positive -> Q) : Prop :=
  (forall i j, 0 <= x i j)
  /\ each 1 parents (fun i r => over 1 children (fun j _ => x i j) == number r)
  /\ each 1 children (fun j s => over 1 parents (fun i _ => x i j) == number s).

Definition matching_cost (parents children : list group_run) (x : positive -> positive -> Q) : Q :=
  over 1 parents (fun i r => over 1 children (fun j s => Qabs (size r - size s) * x i j)).

Definition worth (runs : list group_run) : Q := over 1 runs (fun _ r => potential r * number r).

Lemma over_le {A : Type} (f g : positive -> A -> Q) : forall xs k, (forall i x, In x xs -> f i x <= g i x) ->
  over k xs f <= over k xs g.
Proof.
  induction xs as [|x xs IH]; intros k L; cbn [over]; [lra|].
  pose proof (L k x (or_introl eq_refl)). specialize (IH (Pos.succ k) (fun i y I => L i y (or_intror I))). lra.
Qed.

Lemma worth_is (f : positive -> group_run -> Q) : forall all k, each k all (fun i r => f i r == number r) ->
  over k all (fun i r => potential r * f i r) == over k all (fun _ r => potential r * number r).
Proof.
  induction all as [|r rest IH]; intros k E; cbn [over]; [reflexivity|]. destruct E as [E Es]. now rewrite E, (IH _ Es).
Qed.

(** The potentials of both, pair by pair. *)
Lemma shares children x : forall parents k,
  over k parents (fun i r => over 1 children (fun j s => (potential r - potential s) * x i j))
  == over k parents (fun i r => potential r * over 1 children (fun j _ => x i j))
     - over 1 children (fun j s => potential s * over k parents (fun i _ => x i j)).
Proof.
  induction parents as [|r rest IH]; intro k; cbn [over].
  - rewrite (over_same _ (fun _ _ => 0)) by (intros; ring). rewrite over_zero. ring.
  - rewrite IH, (over_same (fun j s => potential s * (x k j + _)) (fun j s => potential s * x k j
      + 1 * (potential s * over (Pos.succ k) rest (fun i _ => x i j)))), over_add by (intros; ring).
    rewrite (over_same (fun j s => (potential r - potential s) * x k j) (fun j s => 0 + - (1) * (potential s * x k j)
      + potential r * x k j)), !over_add, over_zero by (intros; ring). ring.
Qed.

(** Only neighbours are compared, in any order of all runs by size: then no matching costs less than the potentials
    say, and one that costs no more is optimal. *)
Theorem group_matching_bound parents children order x :
  Permutation order (parents ++ children) -> in_order order -> matching parents children x ->
  worth parents - worth children <= matching_cost parents children x.
Proof.
  intros P G (Pos & Rows & Cols). unfold worth. rewrite <- (worth_is _ _ _ Rows), <- (worth_is _ _ _ Cols).
  pose proof (shares children x parents 1) as E. unfold matching_cost. rewrite <- E.
  apply over_le. intros i r R. apply over_le. intros j s S.
  apply Qmult_le_compat_r; [|apply Pos].
  apply (in_order_pairs order G); apply (Permutation_in _ (Permutation_sym P)), in_or_app; auto.
Qed.

(** * Chebyshev: no answer lies within distance e if one of its three conditions fails *)

Open Scope Z_scope.

Definition sum_of (xs : list Z) : Z := fold_right Z.add 0 xs.

(** Whole counts x ≥ 0 within distance e of y. *)
Definition near (e : Z) (y x : Z) : Prop := 0 <= x /\ Z.abs (x - y) <= e.

Theorem chebyshev_certificate e ys : forall xs, Forall2 (near e) ys xs ->
  Forall (fun y => 0 <= y + e) ys
  /\ sum_of (map (fun y => Z.max 0 (y - e)) ys) <= sum_of xs <= sum_of (map (fun y => y + e) ys).
Proof.
  induction ys as [|y ys IH]; intros xs N; inversion N as [|? x ? rest [P B] Rest]; subst; simpl.
  - split; [constructor | lia].
  - destruct (IH rest Rest) as [F S]. split; [constructor; [lia | exact F] | lia].
Qed.

(** Each condition bounds the distance from below: e ≥ −y; n·e ≥ Σ x − Σ y; and, with k positive y,
    k·e ≥ Σ max(0, y) − Σ x. *)
Corollary chebyshev_bounds e ys xs : Forall2 (near e) ys xs ->
  Forall (fun y => - y <= e) ys
  /\ sum_of xs - sum_of ys <= Z.of_nat (length ys) * e
  /\ sum_of (map (Z.max 0) ys) - sum_of xs <= Z.of_nat (length (filter (Z.ltb 0) ys)) * e.
Proof.
  induction 1 as [|y x ys xs [P B] _ (F & S & T)]; [cbn; repeat split; auto using Forall_nil; lia|].
  change (sum_of (x :: xs)) with (x + sum_of xs). change (sum_of (y :: ys)) with (y + sum_of ys).
  change (sum_of (map (Z.max 0) (y :: ys))) with (Z.max 0 y + sum_of (map (Z.max 0) ys)). cbn [filter length].
  repeat split; [constructor; [lia | exact F] | |]; [|destruct (Z.ltb_spec 0 y); cbn [length]];
    rewrite ?Nat2Z.inj_succ, ?Z.mul_succ_l;
    set (positive := sum_of (map _ ys)) in *; set (most := Z.of_nat (length (filter _ ys)) * e) in *; lia.
Qed.
