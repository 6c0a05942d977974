(** The certificates of the models: what each of them checks implies that its answer is optimal.

    A certificate computes a lower bound m of cost(z) − charge·z for each variable, in the model's own closed
    form, and compares the sum of these and of what the rows are paid with the cost of the answer. *)

From Coq Require Import QArith Qround Qabs ZArith List Bool Lia Lqa.
From Lagrangian Require Import Numbers Programs Minimum Bound.
Import ListNotations.
Open Scope Q_scope.

(** * For any program *)

(** The coefficient of variable j in a row, and what j is charged: Σ price · coefficient. *)
Fixpoint coefficient (j : positive) (es : list (positive * Q)) : Q :=
  match es with
  | [] => 0
  | (k, a) :: rest => (if Pos.eqb k j then a else 0) + coefficient j rest
  end.

Fixpoint charge_on (j : positive) (rs : list row) (ys : list Q) : Q :=
  match rs, ys with
  | r :: rs, y :: ys => y * coefficient j (entries r) + charge_on j rs ys
  | _, _ => 0
  end.

(** Each m is at most the variable's cost, less its charge, wherever the variable may be. *)
Fixpoint dual (k : positive) (xs : list variable) (charge : positive -> Q) (ms : list Q) : Prop :=
  match xs, ms with
  | [], [] => True
  | x :: xs, m :: ms =>
      (forall z, allows x z -> m <= cost_of (pieces x) z - charge k * z) /\ dual (Pos.succ k) xs charge ms
  | _, _ => False
  end.

Definition total (ms : list Q) : Q := fold_right Qplus 0 ms.

Fixpoint weighted (k : positive) (xs : list variable) (f : positive -> Q) (v : answer) : Q :=
  match xs with [] => 0 | _ :: rest => f k * v k + weighted (Pos.succ k) rest f v end.

Lemma weighted_add xs : forall k f g v,
  weighted k xs (fun j => f j + g j) v == weighted k xs f v + weighted k xs g v.
Proof. induction xs as [|x xs IH]; intros k f g v; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma weighted_times xs y : forall k f v, weighted k xs (fun j => y * f j) v == y * weighted k xs f v.
Proof. induction xs as [|x xs IH]; intros k f v; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma weighted_zero xs v : forall k, weighted k xs (fun _ => 0) v == 0.
Proof. induction xs as [|x xs IH]; intro k; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma weighted_before xs i a v : forall k, (Zpos i < Zpos k)%Z ->
  weighted k xs (fun j => if Pos.eqb i j then a else 0) v == 0.
Proof.
  induction xs as [|x xs IH]; intros k K; simpl; [ring|]. rewrite IH by lia.
  destruct (Pos.eqb_spec i k); [lia | ring].
Qed.

Lemma weighted_one xs i a v : forall k, among k xs i ->
  weighted k xs (fun j => if Pos.eqb i j then a else 0) v == a * v i.
Proof.
  unfold among. induction xs as [|x xs IH]; intros k K; simpl length in K; simpl; [lia|].
  destruct (Pos.eqb_spec i k) as [<-|N].
  - rewrite weighted_before by lia. ring.
  - rewrite IH by lia. ring.
Qed.

Lemma weighted_row xs v : forall es, Forall (fun e => among 1 xs (fst e)) es ->
  weighted 1 xs (fun j => coefficient j es) v == activity es v.
Proof.
  induction es as [|[k a] es IH]; intro All; simpl; [apply weighted_zero|].
  inversion All as [|? ? K Rest]; subst. simpl in K.
  rewrite (weighted_add xs 1 (fun j => if Pos.eqb k j then a else 0) (fun j => coefficient j es)).
  rewrite IH by exact Rest. rewrite weighted_one by exact K. ring.
Qed.

Lemma weighted_rows xs v : forall rs ys,
  Forall (fun r => Forall (fun e => among 1 xs (fst e)) (entries r)) rs ->
  weighted 1 xs (fun j => charge_on j rs ys) v == priced rs ys v.
Proof.
  induction rs as [|r rs IH]; intros [|y ys] All; simpl; try apply weighted_zero.
  inversion All as [|? ? R Rest]; subst.
  rewrite (weighted_add xs 1 (fun j => y * coefficient j (entries r)) (fun j => charge_on j rs ys)).
  rewrite (weighted_times xs y 1 (fun j => coefficient j (entries r))).
  rewrite weighted_row by exact R. rewrite IH by exact Rest. ring.
Qed.

Lemma dual_below charge v : forall xs k ms, dual k xs charge ms -> all_allow k xs v ->
  total ms <= total_cost k xs v - weighted k xs charge v.
Proof.
  induction xs as [|x xs IH]; intros k [|m ms] D A; simpl in *; try tauto; [lra|].
  destruct D as [M D], A as [X A]. specialize (M _ X). specialize (IH _ _ D A).
  unfold total in *. simpl. lra.
Qed.

Lemma in_range_is p : in_range p = true ->
  Forall (fun r => Forall (fun e => among 1 (variables p) (fst e)) (entries r)) (rows p).
Proof.
  intro R. unfold in_range in R. rewrite forallb_forall in R. apply Forall_forall. intros r In.
  apply Forall_forall. intros e Ie. specialize (R r In). rewrite forallb_forall in R.
  specialize (R e Ie). apply Z.leb_le in R. rewrite count_is in R. unfold among. lia.
Qed.

(** Any certificate of this form gives a lower bound. *)
Theorem certificate_bound p ys s ms w :
  in_range p = true -> all_paid (rows p) ys 0 = Some s ->
  dual 1 (variables p) (fun j => charge_on j (rows p) ys) ms ->
  feasible p w -> total ms + s <= objective p w.
Proof.
  intros R S D [A Rows]. pose proof (all_paid_at_most w _ _ _ _ Rows S) as Paid.
  pose proof (dual_below _ w _ _ _ D A) as Below. rewrite weighted_rows in Below by now apply in_range_is.
  unfold objective. lra.
Qed.

Theorem certificate_optimal p ys s ms v :
  in_range p = true -> all_paid (rows p) ys 0 = Some s ->
  dual 1 (variables p) (fun j => charge_on j (rows p) ys) ms ->
  feasible p v -> objective p v == total ms + s -> optimal p v.
Proof.
  intros R S D F E. split; [exact F|]. intros w W.
  pose proof (certificate_bound p ys s ms w R S D W). lra.
Qed.

(** The last of a list, or x if it is empty. *)
Fixpoint last_of {A : Type} (x : A) (xs : list A) : A :=
  match xs with [] => x | y :: rest => last_of y rest end.

(** * CostTable: one price λ; Σ over the tables of the least of cost − λ·k, and λ·total *)

Fixpoint all_ones {A : Type} (k : positive) (xs : list A) : list (positive * Q) :=
  match xs with [] => [] | _ :: rest => (k, 1) :: all_ones (Pos.succ k) rest end.

Definition cost_table (tables : list (Z * list Q)) (sum : Q) : program :=
  Make (map (fun t => Var None None true [Table (fst t) (snd t)]) tables)
       [Row (Some sum) (Some sum) (all_ones 1 tables)].

Definition least_in_table (price : Q) (t : Z * list Q) (m : Q) : Prop :=
  forall z c, entry (snd t) (z - fst t) = Some c -> m <= c - price * inject_Z z.

Lemma tables_below price w : forall tables k ms, Forall2 (least_in_table price) tables ms ->
  all_allow k (map (fun t => Var None None true [Table (fst t) (snd t)]) tables) w ->
  total ms + price * activity (all_ones k tables) w
  <= total_cost k (map (fun t => Var None None true [Table (fst t) (snd t)]) tables) w.
Proof.
  induction tables as [|t tables IH]; intros k ms M A; inversion M as [|? m ? rest L Rest]; subst.
  { unfold total. simpl. lra. }
  destruct A as [X A]. specialize (IH _ _ Rest A).
  destruct X as (_ & _ & _ & P). apply Forall_inv in P. cbn in P. destruct P as (z & c & Z & C).
  specialize (L z c C).
  cbn [map all_ones activity total_cost pieces cost_of piece_cost total fold_right] in *.
  unfold total in *. assert (Qfloor (w k) = z) as -> by (rewrite Z; apply Qfloor_Z). rewrite C.
  rewrite <- Z in L. lra.
Qed.

(** If the price leaves no gap, the answer is optimal. *)
Theorem cost_table_certificate tables sum price ms v :
  Forall2 (least_in_table price) tables ms ->
  feasible (cost_table tables sum) v ->
  objective (cost_table tables sum) v == total ms + price * sum ->
  optimal (cost_table tables sum) v.
Proof.
  intros M F E. split; [exact F|]. intros w [A R].
  inversion R as [|? ? [Lo Hi] _]; subst. simpl in Lo, Hi.
  pose proof (tables_below price w _ _ _ M A) as B. rewrite E. unfold objective, cost_table; simpl.
  assert (activity (all_ones 1 tables) w == sum) as S by lra. rewrite S in B. exact B.
Qed.

(** * Isotonic: prices λ ≥ 0 of the steps, λ₀ of the lower bound and λₙ of the upper one *)

Fixpoint steps {A : Type} (k : positive) (xs : list A) : list row :=
  match xs with
  | [] => []
  | _ :: rest =>
      match rest with
      | [] => []
      | _ => Row (Some 0) None [(k, - (1)); (Pos.succ k, 1)] :: steps (Pos.succ k) rest
      end
  end.

(** An ascending chain of variables with the same bounds, and any costs. *)
Definition chain (lo hi : option Q) (integer : bool) (costs : list (list piece)) : program :=
  Make (map (Var lo hi integer) costs) (steps 1 costs).

(** [m] is at most cost(z) + (λ' − λ)·z for every value z of its kind: what each entry's minimum is. *)
Fixpoint chain_dual (integer : bool) (price : Q) (costs : list (list piece)) (ms next : list Q) : Prop :=
  match costs, ms, next with
  | [], [], [] => True
  | f :: fs, m :: ms, y :: ys =>
      0 <= y
      /\ (forall z, kind_of integer z -> Forall (fun p => piece_allows p z) f ->
            m <= cost_of f z + (y - price) * z)
      /\ chain_dual integer y fs ms ys
  | _, _, _ => False
  end.

(** What the price of a bound is paid: 0 for a bound that is missing, whose price must be 0. *)
Definition paid_bound (price : Q) (limit : option Q) (s : Q) : Prop :=
  match limit with Some l => s == price * l | None => price == 0 /\ s == 0 end.

Lemma chain_below lo hi integer w last : forall costs k price ms next,
  costs <> [] -> chain_dual integer price costs ms next -> last_of price next == last ->
  all_allow k (map (Var lo hi integer) costs) w -> Forall (fun r => holds r w) (steps k costs) ->
  exists final, below hi final /\
  total ms + price * w k - last * final <= total_cost k (map (Var lo hi integer) costs) w.
Proof.
  induction costs as [|f costs IH]; intros k price ms next N D L A R; [congruence|].
  destruct ms as [|m ms], next as [|y next]; simpl in D; try tauto.
  destruct D as (Y & M & D). destruct A as [(X1 & X2 & X3 & X4) A]. simpl in X1, X2, X3, X4.
  specialize (M (w k) X3 X4).
  destruct costs as [|g costs].
  - destruct ms, next; simpl in D; try tauto. exists (w k). split; [exact X2|].
    simpl in L. unfold total. simpl. rewrite <- L. lra.
  - cbn [steps] in R. inversion R as [|? ? [H _] Rest]; subst. simpl in H.
    destruct (IH (Pos.succ k) y ms next ltac:(congruence) D L A Rest) as (final & B & T).
    exists final. split; [exact B|].
    assert (0 <= y * (w (Pos.succ k) - w k)) by (apply Qmult_le_0_compat; lra).
    change (total (m :: ms)) with (m + total ms).
    change (total_cost k (map (Var lo hi integer) (f :: g :: costs)) w) with
      (cost_of f (w k) + total_cost (Pos.succ k) (map (Var lo hi integer) (g :: costs)) w).
    lra.
Qed.

(** If the prices leave no gap, the answer is optimal: bound = Σ m + λ₀·lower − λₙ·upper. *)
Theorem isotonic_certificate lo hi integer costs first ms next low high v :
  costs <> [] -> 0 <= first -> chain_dual integer first costs ms next ->
  paid_bound first lo low -> paid_bound (last_of first next) hi high ->
  feasible (chain lo hi integer costs) v ->
  objective (chain lo hi integer costs) v == total ms + low - high ->
  optimal (chain lo hi integer costs) v.
Proof.
  intros N F0 D Low High F E. split; [exact F|]. intros w [A R]. rewrite E.
  destruct (chain_below lo hi integer w (last_of first next) costs 1 first ms next N D
              (Qeq_refl _) A R) as (final & B & T).
  unfold objective, chain; simpl.
  assert (Last : 0 <= last_of first next).
  { clear - F0 D. revert first ms next F0 D.
    induction costs as [|f costs IH]; intros first ms next F0 D;
    destruct ms as [|m ms], next as [|y next]; simpl in D; try tauto.
    destruct D as (Y & _ & D). exact (IH y ms next Y D). }
  assert (L : low <= first * w 1%positive).
  { destruct costs as [|f costs]; [congruence|]. destruct A as [(X & _) _].
    destruct lo as [l|]; simpl in *.
    - rewrite Low. assert (0 <= first * (w 1%positive - l)) by (apply Qmult_le_0_compat; lra). lra.
    - destruct Low as [Z ->]. rewrite Z. lra. }
  assert (H : last_of first next * final <= high).
  { destruct hi as [u|]; simpl in *.
    - rewrite High. assert (0 <= last_of first next * (u - final)) by (apply Qmult_le_0_compat; lra). lra.
    - destruct High as [Z ->]. rewrite Z. lra. }
  lra.
Qed.

(** * ConstrainedInference: a price for every family; squares without bounds, in closed form *)

(** A family: the number of its parent, and those of its children, which add up to it. *)
Definition family_row (family : positive * list positive) : row :=
  Row (Some 0) (Some 0) ((fst family, - (1)) :: map (fun c => (c, 1)) (snd family)).

(** Nodes with a weight and a noisy count each. *)
Definition inference (nodes : list (Q * Q)) (families : list (positive * list positive)) : program :=
  Make (map (fun n => Var None None false [Square (fst n) (snd n)]) nodes) (map family_row families).

(** The least of weight·(z − n)² − charge·z over all z: −charge·n − charge² / (4·weight). *)
Definition least_square (charge : Q) (node : Q * Q) : Q :=
  - charge * snd node - charge * charge / (4 * fst node).

Fixpoint least_squares (k : positive) (charge : positive -> Q) (nodes : list (Q * Q)) : list Q :=
  match nodes with [] => [] | n :: rest => least_square (charge k) n :: least_squares (Pos.succ k) charge rest end.

Lemma least_square_is charge node z : 0 < fst node ->
  least_square charge node <= fst node * ((z - snd node) * (z - snd node)) - charge * z.
Proof.
  destruct node as [w n]; simpl. intro W. unfold least_square; simpl.
  assert (S : w * ((z - n) * (z - n)) - charge * z - (- charge * n - charge * charge / (4 * w))
              == w * ((z - n - charge / (2 * w)) * (z - n - charge / (2 * w)))) by (field; lra).
  assert (0 <= w * ((z - n - charge / (2 * w)) * (z - n - charge / (2 * w)))).
  { apply Qmult_le_0_compat; [lra|]. set (q := z - n - charge / (2 * w)).
    destruct (Qlt_le_dec q 0); [|now apply Qmult_le_0_compat].
    setoid_replace (q * q) with (- q * - q) by ring. apply Qmult_le_0_compat; lra. }
  lra.
Qed.

Lemma inference_dual charge : forall nodes k, Forall (fun n => 0 < fst n) nodes ->
  dual k (map (fun n => Var None None false [Square (fst n) (snd n)]) nodes) charge
       (least_squares k charge nodes).
Proof.
  induction nodes as [|n nodes IH]; intros k W; simpl; [exact I|].
  inversion W as [|? ? W1 Rest]; subst. split; [|now apply IH].
  intros z _. pose proof (least_square_is (charge k) n z W1). lra.
Qed.

(** If the prices leave no gap, the answer is optimal. The rows of families are paid nothing. *)
Theorem constrained_inference_certificate nodes families ys v :
  Forall (fun n => 0 < fst n) nodes -> length ys = length families ->
  in_range (inference nodes families) = true ->
  feasible (inference nodes families) v ->
  objective (inference nodes families) v
  == total (least_squares 1 (fun j => charge_on j (map family_row families) ys) nodes) ->
  optimal (inference nodes families) v.
Proof.
  intros W L R F E.
  assert (S : forall rest ys so_far, so_far == 0 -> length ys = length rest ->
    exists s, s == 0 /\ all_paid (map family_row rest) ys so_far = Some s).
  { clear. induction rest as [|r rest IH]; intros [|y ys] so_far Z N; simpl in N; try discriminate.
    { exists so_far. now split. }
    cbn [map all_paid]. assert (P : exists t, t == 0 /\ paid (family_row r) y = Some t).
    { unfold paid, family_row; cbn [least most option_map].
      destruct (negb (at_most y 0)); [|destruct (negb (at_most 0 y))];
      [exists (mul y 0) | exists (mul y 0) | exists 0]; split; try reflexivity; rewrite mul_is; ring. }
    destruct P as (t & T & ->). apply IH; [|congruence]. rewrite add_is, Z, T. ring. }
  destruct (S families ys 0 (Qeq_refl 0) L) as (s & Zero & Paid).
  apply certificate_optimal with (ys := ys) (s := s)
    (ms := least_squares 1 (fun j => charge_on j (map family_row families) ys) nodes); try assumption.
  - apply inference_dual, W.
  - rewrite E, Zero. ring.
Qed.

(** * HierarchyQIP: a price for every family and for the root; squares of whole numbers within bounds *)

(** If every variable has its least cost, less its charge, and every row is worth what it is paid, the answer is
    optimal. *)
Fixpoint each_least (k : positive) (xs : list variable) (charge : positive -> Q) (v : answer) : Prop :=
  match xs with
  | [] => True
  | x :: rest =>
      (forall z, allows x z -> cost_of (pieces x) (v k) - charge k * v k <= cost_of (pieces x) z - charge k * z)
      /\ each_least (Pos.succ k) rest charge v
  end.

Fixpoint reduced_costs (k : positive) (xs : list variable) (charge : positive -> Q) (v : answer) : list Q :=
  match xs with
  | [] => []
  | x :: rest =>
      (cost_of (pieces x) (v k) - charge k * v k) :: reduced_costs (Pos.succ k) rest charge v
  end.

Theorem complementary_optimal p ys s v :
  in_range p = true -> all_paid (rows p) ys 0 = Some s -> s == priced (rows p) ys v ->
  each_least 1 (variables p) (fun j => charge_on j (rows p) ys) v ->
  feasible p v -> optimal p v.
Proof.
  intros R S Paid L F. set (charge := fun j => charge_on j (rows p) ys) in *.
  apply certificate_optimal with (ys := ys) (s := s) (ms := reduced_costs 1 (variables p) charge v); auto.
  - fold charge. revert L. generalize (variables p) 1%positive.
    induction l as [|x xs IH]; intros k L; simpl in *; [exact I|]. destruct L as [L Ls]. split; auto.
  - rewrite Paid. rewrite <- (weighted_rows (variables p) v) by now apply in_range_is.
    fold charge. unfold objective. generalize (variables p) 1%positive.
    induction l as [|x xs IH]; intros k; unfold total in *; simpl; [ring|].
    rewrite IH. ring.
Qed.

(** A whole number costs least if the unit below it costs no more than its charge, and the one above no less. *)
Theorem unit_costs_least w n lo hi charge x :
  0 <= w -> is_whole x ->
  (above lo (x - 1) -> w * (2 * (x - n) - 1) <= charge) ->
  (below hi (x + 1) -> charge <= w * (2 * (x - n) + 1)) ->
  forall z, allows (Var lo hi true [Square w n]) z ->
  cost_of [Square w n] x - charge * x <= cost_of [Square w n] z - charge * z.
Proof.
  intros W X Down Up z (Lo & Hi & Z & _). specialize (Z eq_refl).
  cbn [lower upper cost_of piece_cost] in *.
  assert (Step : w * ((z - n) * (z - n)) - charge * z - (w * ((x - n) * (x - n)) - charge * x)
                 == (z - x) * (w * (z + x - 2 * n) - charge)) by ring.
  destruct (Q_dec z x) as [[D|U]|E].
  - pose proof (whole_step z x Z X D) as S.
    assert (C : w * (2 * (x - n) - 1) <= charge).
    { apply Down. destruct lo as [l|]; simpl in *; [lra | exact I]. }
    assert (0 <= w * ((x - 1) - z)) by (apply Qmult_le_0_compat; lra).
    assert (0 <= (x - z) * (charge - w * (z + x - 2 * n))) by (apply Qmult_le_0_compat; lra). lra.
  - pose proof (whole_step x z X Z U) as S.
    assert (C : charge <= w * (2 * (x - n) + 1)).
    { apply Up. destruct hi as [u|]; simpl in *; [lra | exact I]. }
    assert (0 <= w * (z - (x + 1))) by (apply Qmult_le_0_compat; lra).
    assert (0 <= (z - x) * (w * (z + x - 2 * n) - charge)) by (apply Qmult_le_0_compat; lra). lra.
  - rewrite E. lra.
Qed.

(** * Clustering: potentials d with d(j) − d(i) ≤ cost(i, j) + λ for every run i … j − 1 *)

(** The cost of cutting at these places, in order, from [first] on. *)
Fixpoint path_cost (cost : Z -> Z -> Q) (first : Z) (ends : list Z) : Q :=
  match ends with [] => 0 | next :: rest => cost first next + path_cost cost next rest end.

Fixpoint ascending (first : Z) (ends : list Z) : Prop :=
  match ends with [] => True | next :: rest => (first < next)%Z /\ ascending next rest end.

(** Every partition of the values from [first] on costs at least d(last) − d(first) − λ·(number of runs). *)
Theorem clustering_certificate cost d price ends : forall first,
  (forall i j, (i < j)%Z -> d j - d i <= cost i j + price) -> ascending first ends ->
  d (last_of first ends) - d first - price * inject_Z (Z.of_nat (length ends)) <= path_cost cost first ends.
Proof.
  induction ends as [|next rest IH]; intros first P A.
  - simpl. change (inject_Z 0) with 0. lra.
  - destruct A as [L A]. specialize (IH next P A). specialize (P first next L).
    cbn [path_cost last_of]. change (length (next :: rest)) with (S (length rest)).
    rewrite Nat2Z.inj_succ. unfold Z.succ. rewrite inject_Z_plus. change (inject_Z 1) with 1. lra.
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

(** * GroupMatching: potentials that differ by no more than the sizes do *)

(** Runs in order of size, as pairs of size and potential: neighbours differ by no more than their sizes. *)
Fixpoint gentle (s p : Z) (runs : list (Z * Z)) : Prop :=
  match runs with
  | [] => True
  | (t, q) :: rest => s <= t /\ Z.abs (p - q) <= t - s /\ gentle t q rest
  end.

(** Then so do any two of them. *)
Lemma gentle_first runs : forall s p t q, gentle s p runs -> In (t, q) runs -> s <= t /\ Z.abs (p - q) <= t - s.
Proof.
  induction runs as [|[t' q'] rest IH]; intros s p t q G I; [destruct I|].
  destruct G as (L & A & G). destruct I as [E|I].
  - injection E as <- <-. lia.
  - destruct (IH _ _ _ _ G I). lia.
Qed.

Lemma gentle_pairs runs : forall s p t q t' q', gentle s p runs ->
  In (t, q) ((s, p) :: runs) -> In (t', q') ((s, p) :: runs) -> Z.abs (q - q') <= Z.abs (t - t').
Proof.
  induction runs as [|[t0 q0] rest IH]; intros s p t q t' q' G I I'.
  - destruct I as [E|[]], I' as [E'|[]]. injection E as <- <-. injection E' as <- <-. lia.
  - destruct I as [E|I], I' as [E'|I'].
    + injection E as <- <-. injection E' as <- <-. lia.
    + injection E as <- <-. destruct (gentle_first _ _ _ _ _ G I'). lia.
    + injection E' as <- <-. destruct (gentle_first _ _ _ _ _ G I). lia.
    + destruct G as (_ & _ & G). exact (IH _ _ _ _ _ _ G I I').
Qed.

Fixpoint sum_to (n : nat) (f : nat -> Z) : Z :=
  match n with O => 0 | S m => sum_to m f + f m end.

Lemma sum_to_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> sum_to n f <= sum_to n g.
Proof.
  induction n as [|n IH]; intro L; simpl; [lia|].
  assert (sum_to n f <= sum_to n g) by (apply IH; intros; apply L; lia). pose proof (L n ltac:(lia)). lia.
Qed.

Lemma sum_to_same n f g : (forall i, (i < n)%nat -> f i = g i) -> sum_to n f = sum_to n g.
Proof. intro E. apply Z.le_antisymm; apply sum_to_le; intros i I; rewrite (E i I); lia. Qed.

Lemma sum_to_times n a f : sum_to n (fun i => a * f i) = a * sum_to n f.
Proof. induction n as [|n IH]; simpl; [lia|]. rewrite IH. lia. Qed.

Lemma sum_to_minus n f g : sum_to n (fun i => f i - g i) = sum_to n f - sum_to n g.
Proof. induction n as [|n IH]; simpl; [lia|]. rewrite IH. lia. Qed.

Lemma sum_to_swap n m f : sum_to n (fun i => sum_to m (f i)) = sum_to m (fun j => sum_to n (fun i => f i j)).
Proof.
  induction n as [|n IH]; simpl.
  - induction m as [|m IHm]; simpl; [reflexivity | now rewrite <- IHm].
  - rewrite IH. clear. induction m as [|m IHm]; simpl; [reflexivity|]. rewrite <- IHm. lia.
Qed.

(** Every matching of [rows] parent runs with [cols] child runs costs at least what the potentials say. *)
Theorem group_matching_certificate rows cols x size child_size count child_count u v :
  (forall i j, (i < rows)%nat -> (j < cols)%nat -> 0 <= x i j /\ Z.abs (u i - v j) <= Z.abs (size i - child_size j)) ->
  (forall i, (i < rows)%nat -> sum_to cols (x i) = count i) ->
  (forall j, (j < cols)%nat -> sum_to rows (fun i => x i j) = child_count j) ->
  sum_to rows (fun i => u i * count i) - sum_to cols (fun j => v j * child_count j)
  <= sum_to rows (fun i => sum_to cols (fun j => Z.abs (size i - child_size j) * x i j)).
Proof.
  intros G Rows Cols.
  rewrite (sum_to_same rows _ (fun i => sum_to cols (fun j => u i * x i j)))
    by (intros i I; rewrite <- Rows, sum_to_times by exact I; reflexivity).
  rewrite (sum_to_same cols _ (fun j => sum_to rows (fun i => v j * x i j)))
    by (intros j J; rewrite <- Cols, sum_to_times by exact J; reflexivity).
  rewrite <- (sum_to_swap rows cols (fun i j => v j * x i j)), <- sum_to_minus.
  apply sum_to_le. intros i I. rewrite <- sum_to_minus. apply sum_to_le. intros j J.
  destruct (G i j I J) as [P A]. assert (u i - v j <= Z.abs (size i - child_size j)) by lia.
  rewrite <- Z.mul_sub_distr_r. now apply Z.mul_le_mono_nonneg_r.
Qed.
