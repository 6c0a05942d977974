(** The checker of programs, [models.check.checker]: what it compares implies what it says.

    Its operators are in [Operators.v], the certificates of models that are no such programs in [Models.v]. *)

From Coq Require Import QArith Qround Qabs ZArith List Bool Lia Lqa Morphisms.
From Lagrangian Require Import Numbers Programs Minimum Bound.
Import ListNotations.
Open Scope Q_scope.

(** * Sums over numbered lists *)

(** Σ over the variables, or the rows, from number k on. *)
Fixpoint over {A : Type} (k : positive) (xs : list A) (f : positive -> A -> Q) : Q :=
  match xs with [] => 0 | x :: rest => f k x + over (Pos.succ k) rest f end.

Fixpoint each {A : Type} (k : positive) (xs : list A) (P : positive -> A -> Prop) : Prop :=
  match xs with [] => True | x :: rest => P k x /\ each (Pos.succ k) rest P end.

(** Some of them only. *)
Definition only {A : Type} (mine : positive -> bool) (f : positive -> A -> Q) (k : positive) (x : A) : Q :=
  if mine k then f k x else 0.

Lemma over_same {A : Type} (f g : positive -> A -> Q) : (forall j x, f j x == g j x) ->
  forall xs k, over k xs f == over k xs g.
Proof. intro E. induction xs as [|x xs IH]; intro k; cbn [over]; [reflexivity|]. now rewrite E, IH. Qed.

Lemma over_add {A : Type} a (f g : positive -> A -> Q) : forall xs k,
  over k xs (fun j x => f j x + a * g j x) == over k xs f + a * over k xs g.
Proof. induction xs as [|x xs IH]; intro k; cbn [over]; [ring|]. rewrite IH. ring. Qed.

Lemma over_zero {A : Type} : forall (xs : list A) k, over k xs (fun _ _ => 0) == 0.
Proof. induction xs as [|x xs IH]; intro k; cbn [over]; [reflexivity|]. rewrite IH. ring. Qed.

Lemma over_one {A : Type} c (q : Q) : forall (xs : list A) k,
  ((Zpos c < Zpos k)%Z -> over k xs (fun j _ => if Pos.eqb c j then q else 0) == 0)
  /\ ((Zpos k <= Zpos c < Zpos k + Z.of_nat (length xs))%Z -> over k xs (fun j _ => if Pos.eqb c j then q else 0) == q).
Proof.
  induction xs as [|x xs IH]; intro k; cbn [over length]; [split; [reflexivity | lia]|].
  destruct (IH (Pos.succ k)) as [Before At]. destruct (Pos.eqb_spec c k) as [<-|E]; split; intro L; try lia;
  rewrite ?At, ?Before by lia; ring.
Qed.

(** * The gap of an answer

    Prices ys of the rows charge each variable: c = Aᵀ y. This is all that the proof needs of the charges. *)

Definition adjoint (p : program) (ys cs : positive -> Q) : Prop :=
  forall v, over 1 (variables p) (fun j _ => cs j * v j) == over 1 (rows p) (fun i r => ys i * activity (entries r) v).

(** The excess of a variable is at most e: no other value costs less, its charge included, by more than e. *)
Definition exceeds (x : variable) (c v e : Q) : Prop :=
  forall z, allows x z -> cost_of (pieces x) v - c * v - e <= cost_of (pieces x) z - c * z.

(** What a row whose value is a is paid without being at its side: y·(a − side). *)
Definition missed (r : row) (y a g : Q) : Prop :=
  y == 0 /\ g == 0
  \/ 0 < y /\ (exists l, least r = Some l /\ g == y * (a - l))
  \/ y < 0 /\ (exists u, most r = Some u /\ g == y * (a - u)).

Definition costs (v : answer) (j : positive) (x : variable) : Q := cost_of (pieces x) (v j).

Lemma objective_is p v : objective p v == over 1 (variables p) (costs v).
Proof.
  unfold objective. generalize 1%positive. induction (variables p) as [|x xs IH]; intro k; simpl; [reflexivity|].
  now rewrite IH.
Qed.

Lemma some_variables mine cs es v w : forall xs k,
  each k xs (fun j x => exceeds x (cs j) (v j) (es j)) -> all_allow k xs w ->
  over k xs (only mine (costs v)) - over k xs (only mine (fun j _ => cs j * v j))
  - over k xs (only mine (fun j _ => es j))
  <= over k xs (only mine (costs w)) - over k xs (only mine (fun j _ => cs j * w j)).
Proof.
  induction xs as [|x xs IH]; intros k E A; simpl; [lra|]. destruct E as [E Es], A as [A As].
  specialize (IH _ Es As). specialize (E _ A). unfold only, costs in *. destruct (mine k); lra.
Qed.

Lemma some_rows own ys gs v w : forall rs k,
  each k rs (fun i r => missed r (ys i) (activity (entries r) v) (gs i)) -> Forall (fun r => holds r w) rs ->
  over k rs (only own (fun i r => ys i * activity (entries r) v)) - over k rs (only own (fun i _ => gs i))
  <= over k rs (only own (fun i r => ys i * activity (entries r) w)).
Proof.
  induction rs as [|r rs IH]; intros k M H; simpl; [lra|]. destruct M as [M Ms].
  inversion H as [|? ? [Lo Hi] Hs]; subst. specialize (IH _ Ms Hs). unfold only in *.
  set (a := activity (entries r) v) in *. set (b := activity (entries r) w) in *.
  enough (ys k * a - gs k <= ys k * b) by (destruct (own k); lra).
  destruct M as [[Y ->]|[(Y & l & L & ->)|(Y & u & U & ->)]].
  - rewrite Y. lra.
  - rewrite L in Lo. simpl in Lo. assert (0 <= ys k * (b - l)) by (apply Qmult_le_0_compat; lra). lra.
  - rewrite U in Hi. simpl in Hi. assert (0 <= - ys k * (u - b)) by (apply Qmult_le_0_compat; lra). lra.
Qed.

(** For any prices and any values: their cost, less all excess and what rows missed, is a lower bound. *)
Theorem gap_is_right p ys cs v es gs w :
  adjoint p ys cs ->
  each 1 (variables p) (fun j x => exceeds x (cs j) (v j) (es j)) ->
  each 1 (rows p) (fun i r => missed r (ys i) (activity (entries r) v) (gs i)) ->
  feasible p w ->
  objective p v - (over 1 (variables p) (fun j _ => es j) + over 1 (rows p) (fun i _ => gs i)) <= objective p w.
Proof.
  intros C E M [A H]. rewrite !objective_is.
  pose proof (some_variables (fun _ => true) cs es v w _ _ E A) as V.
  pose proof (some_rows (fun _ => true) ys gs v w _ _ M H) as R.
  unfold only in V, R. pose proof (C v). pose proof (C w). change (over 1 (variables p) (costs v)) with
    (over 1 (variables p) (fun j x => costs v j x)). change (over 1 (variables p) (costs w)) with
    (over 1 (variables p) (fun j x => costs w j x)). lra.
Qed.

(** The excess is what [minimum] computes it to be. *)
Lemma excess_is x c v b : minimum x c = At b -> exceeds x c v (cost_of (pieces x) v - c * v - b).
Proof. intros M z A. pose proof (minimum_is_a_bound x c z A) as B. rewrite M in B. simpl in B. lra. Qed.

(** * Slopes: for a convex cost, two comparisons tell that there is no excess *)

(** The checker's costs but tables; a variable that costs nothing has the line of slope 0. *)
Definition convex (p : piece) : Prop :=
  match p with Linear _ => True | Square w _ | Absolute w _ => 0 <= w | Table _ _ => False end.

(** The slope to the right of v; of whole variables, the cost of the unit there. *)
Definition right_slope (integer : bool) (p : piece) (v : Q) : Q :=
  if integer then piece_cost p (v + 1) - piece_cost p v else
  match p with
  | Linear w => w
  | Square w c => 2 * w * (v - c)
  | Absolute w c => if Qlt_le_dec v c then - w else w
  | Table _ _ => 0
  end.

Definition left_slope (integer : bool) (p : piece) (v : Q) : Q :=
  if integer then piece_cost p v - piece_cost p (v - 1) else
  match p with
  | Linear w => w
  | Square w c => 2 * w * (v - c)
  | Absolute w c => if Qlt_le_dec c v then w else - w
  | Table _ _ => 0
  end.

Lemma absolute_rises a d : 1 <= d -> d * (Qabs (a + 1) - Qabs a) <= Qabs (a + d) - Qabs a.
Proof.
  intro D. destruct (Qlt_le_dec a 0) as [N|N].
  - rewrite (Qabs_neg a) by lra. destruct (Qlt_le_dec (a + 1) 0) as [M|M].
    + rewrite (Qabs_neg (a + 1)) by lra. pose proof (Qle_Qabs (- (a + d))). rewrite Qabs_opp in H. lra.
    + rewrite (Qabs_pos (a + 1)), (Qabs_pos (a + d)) by lra.
      assert (0 <= - (2 * a) * (d - 1)) by (apply Qmult_le_0_compat; lra). lra.
  - rewrite !Qabs_pos by lra. lra.
Qed.

Lemma rises integer p v z : convex p -> kind_of integer v -> kind_of integer z -> v < z ->
  right_slope integer p v * (z - v) <= piece_cost p z - piece_cost p v.
Proof.
  intros P Kv Kz L. destruct integer.
  - pose proof (whole_step v z (Kv eq_refl) (Kz eq_refl) L) as S. unfold right_slope.
    destruct p as [w|w c|w c|]; cbn [convex piece_cost right_slope left_slope] in *; try tauto; [lra| |].
    + assert (0 <= w * ((z - v) * (z - v - 1))) by (repeat apply Qmult_le_0_compat; lra). lra.
    + pose proof (absolute_rises (v - c) (z - v) ltac:(lra)) as R.
      setoid_replace (v + 1 - c) with (v - c + 1) by ring. setoid_replace (z - c) with (v - c + (z - v)) by ring.
      assert (0 <= w * (Qabs (v - c + (z - v)) - Qabs (v - c) - (z - v) * (Qabs (v - c + 1) - Qabs (v - c))))
        by (apply Qmult_le_0_compat; lra). lra.
  - destruct p as [w|w c|w c|]; cbn [convex piece_cost right_slope left_slope] in *; try tauto; [lra| |].
    + assert (0 <= w * ((z - v) * (z - v))) by (repeat apply Qmult_le_0_compat; lra). lra.
    + destruct (Qlt_le_dec v c).
      * rewrite (Qabs_neg (v - c)) by lra. pose proof (Qle_Qabs (- (z - c))) as B. rewrite Qabs_opp in B.
        assert (0 <= w * (Qabs (z - c) + (z - c))) by (apply Qmult_le_0_compat; lra). lra.
      * rewrite !Qabs_pos by lra. lra.
Qed.

Lemma falls integer p v z : convex p -> kind_of integer v -> kind_of integer z -> z < v ->
  piece_cost p v - piece_cost p z <= left_slope integer p v * (v - z).
Proof.
  intros P Kv Kz L. destruct integer.
  - pose proof (whole_step z v (Kz eq_refl) (Kv eq_refl) L) as S. unfold left_slope.
    destruct p as [w|w c|w c|]; cbn [convex piece_cost right_slope left_slope] in *; try tauto; [lra| |].
    + assert (0 <= w * ((v - z) * (v - z - 1))) by (repeat apply Qmult_le_0_compat; lra). lra.
    + pose proof (absolute_rises (- (v - c)) (v - z) ltac:(lra)) as R. rewrite Qabs_opp in R.
      setoid_replace (- (v - c) + 1) with (- (v - 1 - c)) in R by ring.
      setoid_replace (- (v - c) + (v - z)) with (- (z - c)) in R by ring. rewrite !Qabs_opp in R.
      assert (0 <= w * (Qabs (z - c) - Qabs (v - c) - (v - z) * (Qabs (v - 1 - c) - Qabs (v - c))))
        by (apply Qmult_le_0_compat; lra). lra.
  - destruct p as [w|w c|w c|]; cbn [convex piece_cost right_slope left_slope] in *; try tauto; [lra| |].
    + assert (0 <= w * ((v - z) * (v - z))) by (repeat apply Qmult_le_0_compat; lra). lra.
    + destruct (Qlt_le_dec c v).
      * rewrite (Qabs_pos (v - c)) by lra. pose proof (Qle_Qabs (z - c)) as B.
        assert (0 <= w * (Qabs (z - c) - (z - c))) by (apply Qmult_le_0_compat; lra). lra.
      * rewrite !Qabs_neg by lra. lra.
Qed.

(** The charge lies between the slopes; on the side of a bound that v is at, nothing is asked. *)
Definition between (x : variable) (p : piece) (c v : Q) : Prop :=
  (c <= right_slope (whole x) p v \/ exists u, upper x = Some u /\ u <= v)
  /\ (left_slope (whole x) p v <= c \/ exists l, lower x = Some l /\ v <= l).

(** What the checker finds of a variable without excess. Tables are compared entry by entry. *)
Definition fits (x : variable) (c v : Q) : Prop :=
  match pieces x with
  | [] => between x (Linear 0) c v
  | [Table first costs] =>
      forall z k, entry costs (z - first) = Some k -> above (lower x) (inject_Z z) -> below (upper x) (inject_Z z) ->
      cost_of (pieces x) v - c * v <= k - c * inject_Z z
  | [p] => convex p /\ between x p c v
  | _ => False
  end.

Lemma between_is_least x p c v z : convex p -> between x p c v ->
  kind_of (whole x) v -> kind_of (whole x) z -> above (lower x) z -> below (upper x) z ->
  piece_cost p v - c * v <= piece_cost p z - c * z.
Proof.
  intros P [Up Down] Kv Kz Lo Hi. destruct (Q_dec z v) as [[L|L]|E].
  - pose proof (falls _ p v z P Kv Kz L). destruct Down as [D|(l & E & D)].
    + assert (0 <= (c - left_slope (whole x) p v) * (v - z)) by (apply Qmult_le_0_compat; lra). lra.
    + rewrite E in Lo. simpl in Lo. lra.
  - pose proof (rises _ p v z P Kv Kz L). destruct Up as [U|(u & E & U)].
    + assert (0 <= (right_slope (whole x) p v - c) * (z - v)) by (apply Qmult_le_0_compat; lra). lra.
    + rewrite E in Hi. simpl in Hi. lra.
  - pose proof (cost_of_same [p] z v E) as S. cbn [cost_of] in S.
    assert (C : c * z == c * v) by now rewrite E. lra.
Qed.

Lemma fits_is_least x c v : allows x v -> fits x c v -> exceeds x c v 0.
Proof.
  intros (_ & _ & Kv & _) F z (Lo & Hi & Kz & T). unfold fits in F.
  destruct (pieces x) as [|p [|q qs]]; cbn [cost_of] in *.
  - pose proof (between_is_least x (Linear 0) c v z I F Kv Kz Lo Hi) as B. simpl in B. lra.
  - destruct p as [w|w a|w a|first costs];
      try (destruct F as [P F]; pose proof (between_is_least x _ c v z P F Kv Kz Lo Hi); lra).
    apply Forall_inv in T. destruct T as (k & a & Z & K).
    assert (S : piece_cost (Table first costs) z == a).
    { simpl. assert (Qfloor z = k) as -> by (rewrite Z; apply Qfloor_Z). now rewrite K. }
    assert (A : above (lower x) (inject_Z k)) by (destruct (lower x); simpl in *; [now rewrite <- Z | exact I]).
    assert (B : below (upper x) (inject_Z k)) by (destruct (upper x); simpl in *; [now rewrite <- Z | exact I]).
    specialize (F k a K A B). rewrite S, <- Z in *. lra.
  - destruct p; contradiction.
Qed.

(** A row that is paid for is at the side that it is paid for. *)
Definition at_side (r : row) (y a : Q) : Prop :=
  (0 < y -> exists l, least r = Some l /\ a == l) /\ (y < 0 -> exists u, most r = Some u /\ a == u).

(** The checker's theorem. *)
Theorem checker_is_right p ys cs v :
  adjoint p ys cs -> feasible p v ->
  each 1 (rows p) (fun i r => at_side r (ys i) (activity (entries r) v)) ->
  each 1 (variables p) (fun j x => fits x (cs j) (v j)) ->
  optimal p v.
Proof.
  intros C F S L. split; [exact F|]. intros w W. destruct F as [A _].
  assert (E : forall xs k, all_allow k xs v -> each k xs (fun j x => fits x (cs j) (v j)) ->
    each k xs (fun j x => exceeds x (cs j) (v j) 0)).
  { induction xs as [|x xs IH]; simpl; auto. intros k [X Xs] [Y Ys]. split; [now apply fits_is_least | auto]. }
  assert (M : forall rs k, each k rs (fun i r => at_side r (ys i) (activity (entries r) v)) ->
    each k rs (fun i r => missed r (ys i) (activity (entries r) v) 0)).
  { induction rs as [|r rs IH]; simpl; auto. intros k [[Lo Hi] Ss]. split; [|auto].
    unfold missed. destruct (Q_dec (ys k) 0) as [[Y|Y]|Y]; [right; right | right; left | left; lra];
    (split; [exact Y|]); [destruct (Hi Y) as (u & U & G) | destruct (Lo Y) as (u & U & G)];
    exists u; (split; [exact U|]); rewrite G; ring. }
  pose proof (gap_is_right p ys cs v (fun _ => 0) (fun _ => 0) w C (E _ _ A L) (M _ _ S) W) as G.
  rewrite !over_zero in G. lra.
Qed.

(** What the checker computes as slopes of whole variables. *)
Lemma slopes_are w c v :
  right_slope true (Square w c) v == 2 * w * (v - c) + w /\ left_slope true (Square w c) v == 2 * w * (v - c) - w
  /\ (is_whole c -> is_whole v ->
      right_slope true (Absolute w c) v == right_slope false (Absolute w c) v
      /\ left_slope true (Absolute w c) v == left_slope false (Absolute w c) v).
Proof.
  unfold right_slope, left_slope. cbn [piece_cost]. split; [ring|]. split; [ring|]. intros C V. split.
  - destruct (Qlt_le_dec v c) as [L|L].
    + pose proof (whole_step v c V C L) as S. rewrite !Qabs_neg by lra. ring.
    + rewrite !Qabs_pos by lra. ring.
  - destruct (Qlt_le_dec c v) as [L|L].
    + pose proof (whole_step c v C V L) as S. rewrite !Qabs_pos by lra. ring.
    + rewrite !Qabs_neg by lra. ring.
Qed.

(** * The excess in closed form: where a charged cost is least *)

(** Squares: the vertex, moved into the bounds. *)
Lemma square_is_least integer w c charge lo hi z :
  0 < w -> kind_of integer z -> above lo z -> below hi z ->
  let top := 2 * w * c + charge in
  let m := no_less (raised integer lo) (no_more (lowered integer hi) (vertex integer w (- top))) in
  vertex integer w (- top) == (if integer then inject_Z (Qfloor ((top + w) / (2 * w))) else top / (2 * w))
  /\ piece_cost (Square w c) m - charge * m <= piece_cost (Square w c) z - charge * z.
Proof.
  intros W K Lo Hi top m. split.
  - unfold vertex. destruct integer; [|rewrite reduced_is; field; lra]. apply inject_Z_injective, Qfloor_comp.
    rewrite reduced_is. field. lra.
  - pose proof (clamp_least integer w (- top) (w * c * c) lo hi z W K (raised_above _ _ _ K Lo)
      (lowered_below _ _ _ K Hi)) as L.
    unfold parabola in L. fold m in L. unfold top in L. cbn [piece_cost]. lra.
Qed.

(** Absolute values: at the center, for whole variables at the whole numbers beside it; or at a bound. *)
Lemma absolute_is_least w c charge lo hi below_c above_c least z :
  0 <= w -> below_c <= c <= above_c -> (z <= below_c \/ above_c <= z) -> above lo z -> below hi z ->
  let f z := piece_cost (Absolute w c) z - charge * z in
  least <= f (no_less lo (no_more hi below_c)) -> least <= f (no_less lo (no_more hi above_c)) ->
  match lo with Some l => least <= f l | None => - w <= charge end ->
  match hi with Some u => least <= f u | None => charge <= w end ->
  least <= f z.
Proof.
  intros W C Z Lo Hi f B A L U.
  assert (Left : forall a, a <= c -> f a == - (w + charge) * a + w * c).
  { intros a D. unfold f. cbn [piece_cost]. rewrite Qabs_neg by lra. ring. }
  assert (Right : forall a, c <= a -> f a == (w - charge) * a - w * c).
  { intros a D. unfold f. cbn [piece_cost]. rewrite Qabs_pos by lra. ring. }
  clearbody f. destruct Z as [Z|Z].
  - rewrite Left by lra. destruct (Qlt_le_dec charge (- w)) as [D|D].
    + destruct lo as [l|]; simpl in *; [|lra]. rewrite Left in L by lra.
      assert (0 <= - (w + charge) * (z - l)) by (apply Qmult_le_0_compat; lra). lra.
    + set (m := no_less lo (no_more hi below_c)) in *. assert (M : z <= m /\ m <= below_c).
      { unfold m, no_less, no_more. destruct lo as [l|], hi as [u|]; simpl in *; try (compare below_c u);
        try match goal with |- context [at_most l ?x] => compare l x end; lra. }
      rewrite Left in B by lra. assert (0 <= (w + charge) * (m - z)) by (apply Qmult_le_0_compat; lra). lra.
  - rewrite Right by lra. destruct (Qlt_le_dec w charge) as [D|D].
    + destruct hi as [u|]; simpl in *; [|lra]. rewrite Right in U by lra.
      assert (0 <= (charge - w) * (u - z)) by (apply Qmult_le_0_compat; lra). lra.
    + set (m := no_less lo (no_more hi above_c)) in *. assert (M : above_c <= m /\ m <= z).
      { unfold m, no_less, no_more. destruct lo as [l|], hi as [u|]; simpl in *; try (compare above_c u);
        try match goal with |- context [at_most l ?x] => compare l x end; lra. }
      rewrite Right in A by lra. assert (0 <= (w - charge) * (z - m)) by (apply Qmult_le_0_compat; lra). lra.
Qed.

(** * Rounding up: costs are multiples of 1/u, and problems side by side are rounded each by itself *)

Definition multiple (u : Z) (q : Q) : Prop := is_whole (inject_Z u * q).

Global Instance is_whole_same : Proper (Qeq ==> iff) is_whole.
Proof. intros a b E. split; intros [z Z]; exists z; [rewrite <- E | rewrite E]; exact Z. Qed.

Definition floored (u : Z) (gap : Q) : Q := inject_Z (Qfloor (inject_Z u * gap)) / inject_Z u.

Lemma positive_unit u : (0 < u)%Z -> 0 < inject_Z u.
Proof. intro U. change 0 with (inject_Z 0). now rewrite <- Zlt_Qlt. Qed.

Lemma floored_is_right u a b gap : (0 < u)%Z -> multiple u a -> multiple u b -> a - gap <= b -> a - floored u gap <= b.
Proof.
  intros U [x X] [y Y] L. apply positive_unit in U.
  assert (F : (x - y <= Qfloor (inject_Z u * gap))%Z).
  { apply floor_le. unfold Zminus. rewrite inject_Z_plus, inject_Z_opp, <- X, <- Y.
    assert (0 <= inject_Z u * (gap - a + b)) by (apply Qmult_le_0_compat; lra). lra. }
  rewrite Zle_Qle in F. unfold Zminus in F. rewrite inject_Z_plus, inject_Z_opp, <- X, <- Y in F.
  enough (a - b <= floored u gap) by lra. apply Qle_shift_div_l; [exact U | lra].
Qed.

(** When costs are multiples of 1/u: centers are multiples of 1/o, and weights over o, or o² for squares, of 1/u. *)
Definition in_units (u : Z) (x : variable) (p : piece) : Prop :=
  match p with
  | Linear w => whole x = true /\ multiple u w
  | Square w c => whole x = true /\ exists o, (0 < o)%Z /\ multiple o c /\ multiple u (w / inject_Z (o * o))
  | Absolute w c => whole x = true /\ exists o, (0 < o)%Z /\ multiple o c /\ multiple u (w / inject_Z o)
  | Table _ cells => Forall (multiple u) cells
  end.

Lemma whole_away o c v : is_whole v -> multiple o c -> is_whole (inject_Z o * (v - c)).
Proof.
  intros V C. setoid_replace (inject_Z o * (v - c)) with (inject_Z o * v + - (inject_Z o * c)) by ring.
  apply whole_add; [apply whole_mul; [now exists o | exact V] | now apply whole_opp].
Qed.

Lemma multiple_cost u x p v : (whole x = true -> is_whole v) -> in_units u x p -> multiple u (piece_cost p v).
Proof.
  unfold multiple. intros K U. destruct p as [w|w c|w c|first cells]; cbn [in_units piece_cost] in *.
  - destruct U as [X M]. rewrite Qmult_assoc. apply whole_mul; auto.
  - destruct U as (X & o & O & C & W). apply positive_unit in O. rewrite inject_Z_mult in W.
    pose proof (whole_away o c v (K X) C) as D. pose proof (whole_mul _ _ W (whole_mul _ _ D D)) as M.
    refine (proj1 (is_whole_same _ _ _) M). field. lra.
  - destruct U as (X & o & O & C & W). apply positive_unit in O.
    pose proof (whole_mul _ _ W (whole_abs _ (whole_away o c v (K X) C))) as M.
    rewrite Qabs_Qmult, (Qabs_pos (inject_Z o)) in M by lra.
    refine (proj1 (is_whole_same _ _ _) M). field. lra.
  - destruct (entry cells _) as [k|] eqn:E; [|exists 0%Z; ring].
    rewrite Forall_forall in U. apply U. eauto using entry_in.
Qed.

Lemma multiple_costs u mine v : forall xs k,
  each k xs (fun _ x => Forall (in_units u x) (pieces x)) -> all_allow k xs v ->
  multiple u (over k xs (only mine (costs v))).
Proof.
  unfold multiple. assert (Z : is_whole (inject_Z u * 0)) by (exists 0%Z; ring).
  induction xs as [|x xs IH]; intros k U A; cbn [over]; [exact Z|]. destruct U as [U Us], A as [(_ & _ & K & _) As].
  rewrite Qmult_plus_distr_r. apply whole_add; [|now apply IH]. unfold only, costs. destruct (mine k); [|exact Z].
  induction U as [|p ps P _ IHp]; cbn [cost_of]; [exact Z|].
  rewrite Qmult_plus_distr_r. apply whole_add; [|exact IHp]. now apply (multiple_cost u x p).
Qed.

(** Problems side by side, numbered: [part] tells that of each variable, [home] that of each row. *)
Definition apart (p : program) (part home : positive -> positive) : Prop :=
  each 1 (rows p) (fun i r => Forall (fun e => part (fst e) = home i) (entries r)).

Definition of_part (part : positive -> positive) (k : positive) (j : positive) : bool := Pos.eqb (part j) k.

Definition part_gap (p : program) (part home : positive -> positive) (es gs : positive -> Q) (k : positive) : Q :=
  over 1 (variables p) (only (of_part part k) (fun j _ => es j))
  + over 1 (rows p) (only (of_part home k) (fun i _ => gs i)).

Lemma adjoint_in_part p part home ys cs k u : adjoint p ys cs -> apart p part home ->
  over 1 (variables p) (only (of_part part k) (fun j _ => cs j * u j))
  == over 1 (rows p) (only (of_part home k) (fun i r => ys i * activity (entries r) u)).
Proof.
  intros C Part. set (own := fun j => if of_part part k j then u j else 0).
  transitivity (over 1 (variables p) (fun j _ => cs j * own j)).
  { apply over_same. intros j x. unfold only, own. destruct (of_part part k j); ring. }
  rewrite (C own). revert Part. unfold apart. generalize 1%positive as i, (rows p) as rs. intros i rs. revert i.
  induction rs as [|r rs IH]; intros i Part; cbn [over]; [reflexivity|]. destruct Part as [P Part]. rewrite (IH _ Part).
  enough (activity (entries r) own == if of_part home k i then activity (entries r) u else 0) as ->
    by (unfold only; destruct (of_part home k i); ring).
  clear - P. unfold own, of_part. induction P as [|[j a] es E _ IH]; cbn [activity]; [now destruct (Pos.eqb _ _)|].
  rewrite IH. cbn [fst] in E. rewrite E. destruct (Pos.eqb _ _); ring.
Qed.

(** Each variable is of one of the n problems, so their costs add up to the objective. *)
Lemma parts_add_up {A : Type} part v (problems : list A) : forall xs k,
  each k xs (fun j _ => Zpos (part j) <= Z.of_nat (length problems))%Z ->
  over 1 problems (fun n _ => over k xs (only (of_part part n) (costs v))) == over k xs (costs v).
Proof.
  induction xs as [|x xs IH]; intros k P; cbn [over]; [apply over_zero|]. destruct P as [P Ps]. rewrite <- (IH _ Ps).
  pose proof (proj2 (over_one (part k) (costs v k x) problems 1) ltac:(lia)) as E.
  rewrite (over_same _ (fun n _ => (if Pos.eqb (part k) n then costs v k x else 0)
    + 1 * over (Pos.succ k) xs (only (of_part part n) (costs v)))) by (intros; unfold only, of_part; ring).
  rewrite over_add, E. ring.
Qed.

(** The bound of each problem is rounded up, and their sum is a bound. With one problem, it is that of the program. *)
Theorem rounding_is_right {A : Type} p ys cs v es gs w u part home (problems : list A) :
  adjoint p ys cs -> apart p part home ->
  each 1 (variables p) (fun j _ => Zpos (part j) <= Z.of_nat (length problems))%Z ->
  each 1 (variables p) (fun j x => exceeds x (cs j) (v j) (es j)) ->
  each 1 (rows p) (fun i r => missed r (ys i) (activity (entries r) v) (gs i)) ->
  (0 < u)%Z -> each 1 (variables p) (fun _ x => Forall (in_units u x) (pieces x)) ->
  feasible p v -> feasible p w ->
  objective p v - over 1 problems (fun n _ => floored u (part_gap p part home es gs n)) <= objective p w.
Proof.
  intros C Part Ps E M U Units [V _] [B H]. rewrite !objective_is, <- !(parts_add_up part _ problems _ _ Ps). clear Ps.
  assert (Each : forall n,
    over 1 (variables p) (only (of_part part n) (costs v)) - floored u (part_gap p part home es gs n)
    <= over 1 (variables p) (only (of_part part n) (costs w))).
  { intro n. apply floored_is_right; auto using multiple_costs. unfold part_gap.
    pose proof (some_variables (of_part part n) cs es v w _ _ E B) as X.
    pose proof (some_rows (of_part home n) ys gs v w _ _ M H) as R.
    pose proof (adjoint_in_part p part home ys cs n v C Part).
    pose proof (adjoint_in_part p part home ys cs n w C Part). lra. }
  assert (All : forall (qs : list A) k, over k qs (fun n _ => over 1 (variables p) (only (of_part part n) (costs v)))
    - over k qs (fun n _ => floored u (part_gap p part home es gs n))
    <= over k qs (fun n _ => over 1 (variables p) (only (of_part part n) (costs w)))).
  { clear - Each. induction qs as [|q qs IH]; intro k; cbn [over]; [lra|].
    specialize (IH (Pos.succ k)). specialize (Each k). lra. }
  apply All.
Qed.
