(** The certificates of the models: what each of them checks implies that its answer is optimal.

    A certificate computes a lower bound m of cost(z) − charge·z for each variable, in the model's own closed
    form, and compares the sum of these and of what the rows are paid with the cost of the answer. *)

From Coq Require Import QArith Qround Qabs ZArith List Bool Lia Lqa Permutation.
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

(** A node has a noisy count and a weight, the inverse of its variance. The weight is [None] for a node of infinite
    variance, such as a root that was not measured: it costs nothing, whatever its count. *)
Definition node : Type := option Q * Q.

Definition node_variable (n : node) : variable :=
  Var None None false (match fst n with Some w => [Square w (snd n)] | None => [] end).

Definition inference (nodes : list node) (families : list (positive * list positive)) : program :=
  Make (map node_variable nodes) (map family_row families).

(** Weights are positive, and a node of infinite variance is charged nothing. *)
Definition node_bounded (charge : Q) (n : node) : Prop :=
  match fst n with Some w => 0 < w | None => charge == 0 end.

(** The least of weight·(z − n)² − charge·z over all z: −charge·n − charge² / (4·weight). *)
Definition least_square (charge : Q) (n : node) : Q :=
  match fst n with Some w => - charge * snd n - charge * charge / (4 * w) | None => 0 end.

(** By how much a node's cost, less its charge, exceeds that: (slope − charge)² / (4·weight), with the slope
    2·weight·(z − n). *)
Definition excess_square (charge : Q) (n : node) (z : Q) : Q :=
  match fst n with
  | Some w => (2 * w * (z - snd n) - charge) * (2 * w * (z - snd n) - charge) / (4 * w)
  | None => 0
  end.

Fixpoint nodes_bounded (k : positive) (charge : positive -> Q) (nodes : list node) : Prop :=
  match nodes with [] => True | n :: rest => node_bounded (charge k) n /\ nodes_bounded (Pos.succ k) charge rest end.

Fixpoint least_squares (k : positive) (charge : positive -> Q) (nodes : list node) : list Q :=
  match nodes with [] => [] | n :: rest => least_square (charge k) n :: least_squares (Pos.succ k) charge rest end.

Fixpoint inference_gap (k : positive) (charge : positive -> Q) (nodes : list node) (v : answer) : Q :=
  match nodes with
  | [] => 0
  | n :: rest => excess_square (charge k) n (v k) + inference_gap (Pos.succ k) charge rest v
  end.

Lemma square_is charge n z : node_bounded charge n ->
  cost_of (pieces (node_variable n)) z - charge * z == least_square charge n + excess_square charge n z.
Proof.
  destruct n as [[w|] n]; unfold node_bounded, least_square, excess_square; simpl; intro W; [field; lra|].
  rewrite W. ring.
Qed.

Lemma excess_square_positive charge n z : node_bounded charge n -> 0 <= excess_square charge n z.
Proof.
  destruct n as [[w|] n]; unfold node_bounded, excess_square; simpl; intro W; [|lra].
  set (q := 2 * w * (z - n) - charge). apply Qle_shift_div_l; [lra|]. rewrite Qmult_0_l.
  destruct (Qlt_le_dec q 0); [|now apply Qmult_le_0_compat].
  setoid_replace (q * q) with (- q * - q) by ring. apply Qmult_le_0_compat; lra.
Qed.

Lemma inference_dual charge : forall nodes k, nodes_bounded k charge nodes ->
  dual k (map node_variable nodes) charge (least_squares k charge nodes).
Proof.
  induction nodes as [|n nodes IH]; intros k W; cbn [map dual least_squares]; [exact I|].
  destruct W as [W Rest]. split; [|now apply IH].
  intros z _. pose proof (square_is _ n z W). pose proof (excess_square_positive _ n z W). lra.
Qed.

Lemma inference_cost charge v : forall nodes k, nodes_bounded k charge nodes ->
  total_cost k (map node_variable nodes) v - weighted k (map node_variable nodes) charge v
  == total (least_squares k charge nodes) + inference_gap k charge nodes v.
Proof.
  unfold total. induction nodes as [|n nodes IH]; intros k W; [simpl; ring|]. destruct W as [W Rest].
  cbn [map total_cost weighted least_squares inference_gap fold_right].
  rewrite <- (Qplus_assoc (least_square _ _)), (Qplus_assoc (fold_right _ _ _)),
    (Qplus_comm (fold_right _ _ _)), <- (Qplus_assoc (excess_square _ _ _)), <- (IH _ Rest).
  pose proof (square_is _ n (v k) W). lra.
Qed.

Lemma families_paid : forall families ys so_far, so_far == 0 -> length ys = length families ->
  exists s, s == 0 /\ all_paid (map family_row families) ys so_far = Some s.
Proof.
  induction families as [|r rest IH]; intros [|y ys] so_far Z N; simpl in N; try discriminate.
  { exists so_far. now split. }
  cbn [map all_paid]. assert (P : exists t, t == 0 /\ paid (family_row r) y = Some t).
  { unfold paid, family_row; cbn [least most option_map].
    destruct (negb (at_most y 0)); [|destruct (negb (at_most 0 y))];
    [exists (mul y 0) | exists (mul y 0) | exists 0]; split; try reflexivity; rewrite mul_is; ring. }
  destruct P as (t & T & ->). apply IH; [|congruence]. rewrite add_is, Z, T. ring.
Qed.

Lemma families_priced v : forall families ys, Forall (fun r => holds r v) (map family_row families) ->
  priced (map family_row families) ys v == 0.
Proof.
  induction families as [|f rest IH]; intros [|y ys] H; simpl map; try reflexivity.
  cbn [map] in H. inversion H as [|? ? [Lo Hi] Rest]; subst. cbn [priced].
  rewrite (IH ys Rest). unfold family_row, above, below in *. cbn [least most] in *.
  set (act := activity _ v) in *. assert (act == 0) as -> by lra. ring.
Qed.

(** Any prices bound every answer from below, if nodes of infinite variance are charged nothing; the gap is a sum of
    squares. *)
Theorem constrained_inference_bound nodes families ys v w :
  let charge := fun j => charge_on j (map family_row families) ys in
  nodes_bounded 1 charge nodes -> length ys = length families ->
  in_range (inference nodes families) = true ->
  feasible (inference nodes families) v -> feasible (inference nodes families) w ->
  objective (inference nodes families) v - inference_gap 1 charge nodes v
  <= objective (inference nodes families) w.
Proof.
  intros charge W L R [Av Rv] F.
  destruct (families_paid families ys 0 (Qeq_refl 0) L) as (s & Zero & Paid).
  pose proof (certificate_bound (inference nodes families) ys s (least_squares 1 charge nodes) w R Paid
                (inference_dual charge nodes 1 W) F) as B.
  pose proof (inference_cost charge v nodes 1 W) as C. fold (variables (inference nodes families)) in C.
  assert (P : weighted 1 (map node_variable nodes) charge v == 0).
  { unfold charge. change (map node_variable nodes) with (variables (inference nodes families)).
    rewrite weighted_rows by (now apply (in_range_is (inference nodes families))).
    apply families_priced. exact Rv. }
  unfold objective in *. simpl variables in *. lra.
Qed.

(** If no gap is left, the answer is optimal. *)
Theorem constrained_inference_certificate nodes families ys v :
  let charge := fun j => charge_on j (map family_row families) ys in
  nodes_bounded 1 charge nodes -> length ys = length families ->
  in_range (inference nodes families) = true ->
  feasible (inference nodes families) v ->
  inference_gap 1 charge nodes v == 0 ->
  optimal (inference nodes families) v.
Proof.
  intros charge W L R F G. split; [exact F|]. intros w Fw.
  pose proof (constrained_inference_bound nodes families ys v w W L R F Fw) as B. fold charge in B. lra.
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

(** * Clustering, Segmentation: potentials of the places 0 … n between values; a run i … j − 1 has 0 ≤ i < j ≤ n *)

(** The cost of cutting at these places, in order, from [first] on. *)
Fixpoint path_cost (cost : Z -> Z -> Q) (first : Z) (ends : list Z) : Q :=
  match ends with [] => 0 | next :: rest => cost first next + path_cost cost next rest end.

Fixpoint ascending (first : Z) (ends : list Z) : Prop :=
  match ends with [] => True | next :: rest => (first < next)%Z /\ ascending next rest end.

(** A partition of n values into runs, by their ends. *)
Definition partition (n : Z) (ends : list Z) : Prop := ascending 0 ends /\ last_of 0%Z ends = n.

(** f(1) + … + f(m) *)
Fixpoint sum_from_1 (m : nat) (f : Z -> Q) : Q :=
  match m with O => 0 | S m => sum_from_1 m f + f (Z.of_nat (S m)) end.

Lemma sum_from_1_mono f : (forall j, 0 <= f j) -> forall m k, (m <= k)%nat -> sum_from_1 m f <= sum_from_1 k f.
Proof.
  intros P m k L. induction L as [|k L IH]; [lra|].
  cbn [sum_from_1]. pose proof (P (Z.of_nat (S k))). lra.
Qed.

Lemma ascending_last : forall ends first, ascending first ends -> (first <= last_of first ends)%Z.
Proof.
  induction ends as [|next rest IH]; intros first A; simpl; [lia|].
  destruct A as [L A]. specialize (IH _ A). lia.
Qed.

Lemma count_one_more {A : Type} (a : A) rest : inject_Z (Z.of_nat (length (a :: rest))) == inject_Z (Z.of_nat (length rest)) + 1.
Proof.
  change (length (a :: rest)) with (S (length rest)). rewrite Nat2Z.inj_succ. unfold Z.succ.
  rewrite inject_Z_plus. reflexivity.
Qed.

Lemma path_below cost d price over n : (forall j, 0 <= over j) -> forall ends first,
  (forall i j, (0 <= i < j)%Z -> (j <= n)%Z -> d j - d i <= cost i j + price + over j) ->
  (0 <= first)%Z -> ascending first ends -> (last_of first ends <= n)%Z ->
  d (last_of first ends) - d first - price * inject_Z (Z.of_nat (length ends))
  - (sum_from_1 (Z.to_nat (last_of first ends)) over - sum_from_1 (Z.to_nat first) over)
  <= path_cost cost first ends.
Proof.
  intros Over. induction ends as [|next rest IH]; intros first P F A L.
  - cbn [last_of length path_cost]. change (inject_Z (Z.of_nat 0)) with 0. lra.
  - destruct A as [N A]. cbn [last_of] in *. pose proof (ascending_last _ _ A) as U.
    specialize (IH next P ltac:(lia) A L). specialize (P first next ltac:(lia) ltac:(lia)).
    rewrite count_one_more. cbn [path_cost].
    assert (O : sum_from_1 (Z.to_nat first) over + over next <= sum_from_1 (Z.to_nat next) over).
    { destruct (Z.to_nat next) as [|m] eqn:M; [lia|]. cbn [sum_from_1].
      replace (Z.of_nat (S m)) with next by lia.
      pose proof (sum_from_1_mono over Over (Z.to_nat first) m ltac:(lia)). lra. }
    lra.
Qed.

(** Let d(j) − d(i) ≤ cost(i, j) + λ + over(j) for every run of the values. Then every partition, each run with its
    price λ, costs at least d(n) − d(0) less all over(j). *)
Theorem clustering_certificate cost d price over n ends :
  (forall j, 0 <= over j) ->
  (forall i j, (0 <= i < j)%Z -> (j <= n)%Z -> d j - d i <= cost i j + price + over j) ->
  partition n ends ->
  d n - d 0%Z - sum_from_1 (Z.to_nat n) over
  <= path_cost cost 0 ends + price * inject_Z (Z.of_nat (length ends)).
Proof.
  intros Over P [A L]. pose proof (path_below cost d price over n Over ends 0%Z P ltac:(lia) A ltac:(lia)) as B.
  rewrite L in B. change (sum_from_1 (Z.to_nat 0) over) with 0 in B. lra.
Qed.

(** Potentials of partitions into k runs, d(r, j) of the first j values cut into r runs. Only runs are compared that
    such a partition can have: the r-th begins at a place i ≥ r − 1, and the first one at 0. *)
Definition layered (cost : Z -> Z -> Q) (d : nat -> Z -> Q) (over : Z -> Q) (n : Z) (k : nat) : Prop :=
  forall r i j, (r < k)%nat -> (Z.of_nat r <= i < j)%Z -> (j <= n)%Z -> (r = O -> i = 0%Z) ->
  d (S r) j - d r i <= cost i j + over (Z.of_nat (S r)).

Lemma layers_below cost d over n k : layered cost d over n k -> forall ends r first,
  (r + length ends = k)%nat -> (Z.of_nat r <= first)%Z -> (r = O -> first = 0%Z) ->
  ascending first ends -> (last_of first ends <= n)%Z ->
  d k (last_of first ends) - d r first - (sum_from_1 k over - sum_from_1 r over) <= path_cost cost first ends.
Proof.
  intros P. induction ends as [|next rest IH]; intros r first K F Z0 A L.
  - cbn [last_of length path_cost] in *. replace k with r by lia. lra.
  - destruct A as [N A]. cbn [last_of length path_cost] in *. pose proof (ascending_last _ _ A) as U.
    specialize (IH (S r) next ltac:(lia) ltac:(lia) ltac:(lia) A L).
    specialize (P r first next ltac:(lia) ltac:(lia) ltac:(lia) Z0).
    cbn [sum_from_1] in IH. lra.
Qed.

Theorem segmentation_certificate cost d over n k ends :
  layered cost d over n k -> partition n ends -> length ends = k ->
  d k n - d O 0%Z - sum_from_1 k over <= path_cost cost 0 ends.
Proof.
  intros P [A L] K.
  pose proof (layers_below cost d over n k P ends O 0%Z ltac:(lia) ltac:(lia) ltac:(auto) A ltac:(lia)) as B.
  rewrite L in B. change (sum_from_1 0 over) with 0 in B. lra.
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

(** * The two together: the potentials of all runs, in order of size, bound every matching *)

(** A run of groups of one size, with its potential. *)
Record group_run : Type := Run { run_size : Z; run_count : Z; potential : Z }.

Definition placed (r : group_run) : Z * Z := (run_size r, potential r).

Definition in_order (runs : list (Z * Z)) : Prop :=
  match runs with [] => True | (s, p) :: rest => gentle s p rest end.

Lemma in_order_pairs runs t q t' q' : in_order runs ->
  In (t, q) runs -> In (t', q') runs -> Z.abs (q - q') <= Z.abs (t - t').
Proof.
  destruct runs as [|[s p] rest]; [contradiction|]. exact (gentle_pairs rest s p t q t' q').
Qed.

Definition no_run : group_run := Run 0 0 0.

Definition run_at (runs : list group_run) (i : nat) : group_run := nth i runs no_run.

(** A matching: how many groups of the parent's i-th run are groups of the children's j-th run. *)
Definition matching (parents children : list group_run) (x : nat -> nat -> Z) : Prop :=
  (forall i j, (i < length parents)%nat -> (j < length children)%nat -> 0 <= x i j)
  /\ (forall i, (i < length parents)%nat -> sum_to (length children) (x i) = run_count (run_at parents i))
  /\ (forall j, (j < length children)%nat ->
        sum_to (length parents) (fun i => x i j) = run_count (run_at children j)).

Definition matching_cost (parents children : list group_run) (x : nat -> nat -> Z) : Z :=
  sum_to (length parents) (fun i => sum_to (length children) (fun j =>
    Z.abs (run_size (run_at parents i) - run_size (run_at children j)) * x i j)).

Definition worth (runs : list group_run) : Z :=
  sum_to (length runs) (fun i => potential (run_at runs i) * run_count (run_at runs i)).

(** Only neighbours are compared, in any order of all runs by size: then no matching costs less than the potentials
    say. *)
Theorem group_matching_bound parents children order x :
  Permutation order (map placed (parents ++ children)) -> in_order order ->
  matching parents children x ->
  worth parents - worth children <= matching_cost parents children x.
Proof.
  intros P G (Pos & Rows & Cols). unfold worth, matching_cost.
  apply (group_matching_certificate (length parents) (length children) x
           (fun i => run_size (run_at parents i)) (fun j => run_size (run_at children j))
           (fun i => run_count (run_at parents i)) (fun j => run_count (run_at children j))
           (fun i => potential (run_at parents i)) (fun j => potential (run_at children j))); [|exact Rows|exact Cols].
  intros i j I J. split; [now apply Pos|]. apply (in_order_pairs order); [exact G| |];
    (apply (Permutation_in _ (Permutation_sym P)); rewrite map_app; apply in_or_app).
  - left. exact (in_map placed parents _ (nth_In parents no_run I)).
  - right. exact (in_map placed children _ (nth_In children no_run J)).
Qed.

(** A matching that costs no more is optimal. *)
Corollary group_matching_optimal parents children order x y :
  Permutation order (map placed (parents ++ children)) -> in_order order ->
  matching_cost parents children x <= worth parents - worth children ->
  matching parents children y -> matching_cost parents children x <= matching_cost parents children y.
Proof. intros P G C M. pose proof (group_matching_bound parents children order y P G M). lia. Qed.

(** * The premises can be met *)

(** A root that was not measured, and two children with 3 and 1 noisy counts: they are their own best estimate. *)
Example unmeasured_root :
  let nodes := [(None, 9%Q); (Some 1%Q, 3%Q); (Some (1 # 2)%Q, 1%Q)] in
  let families := [(1%positive, [2%positive; 3%positive])] in
  optimal (inference nodes families) (fun k => if Pos.eqb k 1 then 4%Q else if Pos.eqb k 2 then 3%Q else 1%Q).
Proof.
  intros nodes families. apply (constrained_inference_certificate nodes families [0%Q]); try reflexivity.
  - repeat split; reflexivity.
  - repeat constructor; simpl; unfold Qle; simpl; try discriminate.
Qed.
