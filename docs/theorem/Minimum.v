(** The least cost of one variable, its charge included, over its bounds.

    [minimum x charge] is a lower bound of cost(v) − charge·v over all values v that [x] allows
    ([minimum_is_a_bound]), and it is the cost of one of them ([minimum_is_attained]). *)

From Coq Require Import QArith Qround Qabs Qminmax ZArith List Bool Lia Lqa.
From Lagrangian Require Import Numbers Programs.
Import ListNotations.
Open Scope Q_scope.

Definition lesser (a b : bounded) : bounded :=
  match a, b with
  | Nothing, _ => Nothing
  | _, Nothing => Nothing
  | Empty, b => b
  | a, Empty => a
  | At a, At b => At (if at_most a b then a else b)
  end.

Lemma lesser_left a b cost : bounds a cost -> bounds (lesser a b) cost.
Proof.
  destruct a as [|a|], b as [|b|]; simpl; try tauto.
  intro A. compare a b; lra.
Qed.

Lemma lesser_right a b cost : bounds b cost -> bounds (lesser a b) cost.
Proof.
  destruct a as [|a|], b as [|b|]; simpl; try tauto.
  intro A. compare a b; lra.
Qed.

Lemma bounds_same b c d : c == d -> bounds b c -> bounds b d.
Proof. destruct b; simpl; try tauto. intros E H. rewrite <- E. exact H. Qed.

(** * Squares and lines: a·v² + s·v + h over an interval *)

Definition parabola (a s h v : Q) : Q := a * v * v + s * v + h.

Definition parabola_at (a s h v : Q) : Q := add (mul (add (mul a v) s) v) h.

Lemma parabola_at_is a s h v : parabola_at a s h v == parabola a s h v.
Proof. unfold parabola_at, parabola. rewrite add_is, mul_is, add_is, mul_is. ring. Qed.

Definition no_less (limit : option Q) (v : Q) : Q :=
  match limit with Some l => if at_most l v then v else l | None => v end.

Definition no_more (limit : option Q) (v : Q) : Q :=
  match limit with Some u => if at_most v u then v else u | None => v end.

(** The bounds of a whole variable, rounded inwards. *)
Definition raised (integer : bool) (limit : option Q) : option Q :=
  match limit with Some l => Some (if integer then inject_Z (Qceiling l) else l) | None => None end.

Definition lowered (integer : bool) (limit : option Q) : option Q :=
  match limit with Some u => Some (if integer then inject_Z (Qfloor u) else u) | None => None end.

Definition crossed (lo hi : option Q) : bool :=
  match lo, hi with Some l, Some u => negb (at_most l u) | _, _ => false end.

(** The lowest point of a parabola that opens upwards; the nearest whole number for whole variables. *)
Definition vertex (integer : bool) (a s : Q) : Q :=
  let t := reduced (- s / (2 * a)) in
  if integer then inject_Z (Qfloor (t + (1 # 2))) else t.

Definition least_parabola (integer : bool) (a s h : Q) (lo hi : option Q) : bounded :=
  let lo := raised integer lo in
  let hi := lowered integer hi in
  if crossed lo hi then Empty
  else if negb (at_most a 0) then At (parabola_at a s h (no_less lo (no_more hi (vertex integer a s))))
  else if at_most 0 a then
    if negb (at_most s 0) then match lo with Some l => At (parabola_at a s h l) | None => Nothing end
    else if negb (at_most 0 s) then match hi with Some u => At (parabola_at a s h u) | None => Nothing end
    else At h
  else match lo, hi with
       | Some l, Some u => lesser (At (parabola_at a s h l)) (At (parabola_at a s h u))
       | _, _ => Nothing
       end.

Definition kind_of (integer : bool) (v : Q) : Prop := integer = true -> is_whole v.

Lemma raised_above integer lo v : kind_of integer v -> above lo v -> above (raised integer lo) v.
Proof.
  destruct lo as [l|], integer; simpl; try tauto.
  intros K A. destruct (K eq_refl) as [z Z]. rewrite Z in *. apply inject_le. now apply ceiling_le.
Qed.

Lemma lowered_below integer hi v : kind_of integer v -> below hi v -> below (lowered integer hi) v.
Proof.
  destruct hi as [u|], integer; simpl; try tauto.
  intros K A. destruct (K eq_refl) as [z Z]. rewrite Z in *. apply inject_le. now apply floor_le.
Qed.

Lemma raised_kind integer l lo : raised integer lo = Some l -> kind_of integer l.
Proof.
  destruct lo as [k|], integer; simpl; intros E I; try discriminate.
  injection E as <-. now exists (Qceiling k).
Qed.

Lemma lowered_kind integer u hi : lowered integer hi = Some u -> kind_of integer u.
Proof.
  destruct hi as [k|], integer; simpl; intros E I; try discriminate.
  injection E as <-. now exists (Qfloor k).
Qed.

Lemma vertex_kind integer a s : kind_of integer (vertex integer a s).
Proof. destruct integer; intro I; try discriminate. eexists. reflexivity. Qed.

Lemma clamped_kind integer lo hi t :
  kind_of integer t ->
  kind_of integer (no_less (raised integer lo) (no_more (lowered integer hi) t)).
Proof.
  intros K. unfold no_less, no_more.
  destruct (lowered integer hi) as [u|] eqn:U; [destruct (at_most t u)|];
  (destruct (raised integer lo) as [l|] eqn:L; [destruct (at_most l _)|]); auto;
  try (eapply lowered_kind; eassumption); eapply raised_kind; eassumption.
Qed.

(** A whole number that is more than another one is more by 1. *)
Lemma whole_step m v : is_whole m -> is_whole v -> m < v -> m + 1 <= v.
Proof.
  intros [y Y] [z Z] L. rewrite Y, Z in *. rewrite <- Zlt_Qlt in L.
  change 1 with (inject_Z 1). rewrite <- inject_Z_plus. apply inject_le. lia.
Qed.

Lemma floor_bounds q : inject_Z (Qfloor q) <= q /\ q < inject_Z (Qfloor q) + 1.
Proof.
  split; [apply Qfloor_le|]. pose proof (Qlt_floor q) as L. rewrite inject_Z_plus in L. exact L.
Qed.

(** Beyond the vertex, a step up by any amount (of a whole variable: by 1 or more) costs nothing less. *)
Lemma vertex_up integer a s v m :
  0 < a -> kind_of integer v -> kind_of integer m -> vertex integer a s <= m -> m < v ->
  0 <= a * (v + m) + s.
Proof.
  intros A Kv Km M L. unfold vertex in M. set (t := reduced (- s / (2 * a))) in *.
  assert (T : a * (2 * t) == - s) by (unfold t; rewrite reduced_is; field; lra).
  destruct integer.
  - pose proof (whole_step m v (Km eq_refl) (Kv eq_refl) L).
    destruct (floor_bounds (t + (1 # 2))) as [_ F].
    assert (0 <= a * ((v + m) - 2 * t)) by (apply Qmult_le_0_compat; lra). lra.
  - assert (0 <= a * ((v + m) - 2 * t)) by (apply Qmult_le_0_compat; lra). lra.
Qed.

Lemma vertex_down integer a s v m :
  0 < a -> kind_of integer v -> kind_of integer m -> m <= vertex integer a s -> v < m ->
  a * (v + m) + s <= 0.
Proof.
  intros A Kv Km M L. unfold vertex in M. set (t := reduced (- s / (2 * a))) in *.
  assert (T : a * (2 * t) == - s) by (unfold t; rewrite reduced_is; field; lra).
  destruct integer.
  - pose proof (whole_step v m (Kv eq_refl) (Km eq_refl) L).
    destruct (floor_bounds (t + (1 # 2))) as [F _].
    assert (0 <= a * (2 * t - (v + m))) by (apply Qmult_le_0_compat; lra). lra.
  - assert (0 <= a * (2 * t - (v + m))) by (apply Qmult_le_0_compat; lra). lra.
Qed.

Lemma parabola_step a s h v m : parabola a s h v - parabola a s h m == (v - m) * (a * (v + m) + s).
Proof. unfold parabola. ring. Qed.

Lemma clamp_least integer a s h lo hi v :
  0 < a -> kind_of integer v -> above (raised integer lo) v -> below (lowered integer hi) v ->
  let m := no_less (raised integer lo) (no_more (lowered integer hi) (vertex integer a s)) in
  parabola a s h m <= parabola a s h v.
Proof.
  intros A K Lo Hi m.
  assert (Km : kind_of integer m) by (apply clamped_kind, vertex_kind).
  pose proof (parabola_step a s h v m) as S.
  destruct (Q_dec v m) as [[V|V]|V].
  - assert (M : m <= vertex integer a s).
    { revert V. unfold m, no_less, no_more. clear - Lo Hi.
      destruct (lowered integer hi) as [u|]; [compare (vertex integer a s) u|];
      (destruct (raised integer lo) as [l|]; simpl in *;
       [match goal with |- context [at_most l ?x] => compare l x end|]); lra. }
    pose proof (vertex_down integer a s v m A K Km M V).
    assert (0 <= (m - v) * - (a * (v + m) + s)) by (apply Qmult_le_0_compat; lra). lra.
  - assert (M : vertex integer a s <= m).
    { revert V. unfold m, no_less, no_more. clear - Lo Hi.
      destruct (lowered integer hi) as [u|]; simpl in *; [compare (vertex integer a s) u|];
      (destruct (raised integer lo) as [l|]; simpl in *;
       [match goal with |- context [at_most l ?x] => compare l x end|]); lra. }
    pose proof (vertex_up integer a s v m A K Km M V).
    assert (0 <= (v - m) * (a * (v + m) + s)) by (apply Qmult_le_0_compat; lra). lra.
  - unfold parabola. rewrite V. lra.
Qed.

Theorem least_parabola_is_a_bound integer a s h lo hi v :
  kind_of integer v -> above lo v -> below hi v ->
  bounds (least_parabola integer a s h lo hi) (parabola a s h v).
Proof.
  intros K Lo Hi. apply (raised_above integer) in Lo; [|exact K].
  apply (lowered_below integer) in Hi; [|exact K]. unfold least_parabola.
  destruct (crossed _ _) eqn:C.
  { destruct (raised integer lo) as [l|], (lowered integer hi) as [u|]; simpl in *; try discriminate.
    apply negb_true_iff, at_most_false in C. lra. }
  compare a 0; simpl negb.
  - compare 0 a.
    + assert (Z : a == 0) by lra. compare s 0; simpl negb.
      * compare 0 s; simpl negb.
        -- simpl. unfold parabola. rewrite Z. assert (s == 0) as -> by lra. lra.
        -- destruct (lowered integer hi) as [u|]; simpl in *; [|exact I].
           rewrite parabola_at_is. unfold parabola. rewrite Z.
           assert (0 <= - s * (u - v)) by (apply Qmult_le_0_compat; lra). lra.
      * destruct (raised integer lo) as [l|]; simpl in *; [|exact I].
        rewrite parabola_at_is. unfold parabola. rewrite Z.
        assert (0 <= s * (v - l)) by (apply Qmult_le_0_compat; lra). lra.
    + destruct (raised integer lo) as [l|], (lowered integer hi) as [u|]; simpl in *; try exact I.
      (* The parabola lies above its chord. *)
      assert (P : parabola a s h l <= parabola a s h v \/ parabola a s h u <= parabola a s h v).
      { destruct (Qlt_le_dec (a * (v + l) + s) 0) as [N|N].
        - right. pose proof (parabola_step a s h v u) as S.
          assert (U : a * (v + u) + s <= 0).
          { assert (0 <= - a * (u - l)) by (apply Qmult_le_0_compat; lra). lra. }
          assert (0 <= (u - v) * - (a * (v + u) + s)) by (apply Qmult_le_0_compat; lra). lra.
        - left. pose proof (parabola_step a s h v l) as S.
          assert (0 <= (v - l) * (a * (v + l) + s)) by (apply Qmult_le_0_compat; lra). lra. }
      rewrite <- !parabola_at_is in P.
      compare (parabola_at a s h l) (parabola_at a s h u); pose proof (parabola_at_is a s h v); lra.
  - simpl. rewrite parabola_at_is. now apply clamp_least.
Qed.

(** * Absolute pieces: the interval is cut where they bend *)

Fixpoint least_bent (integer : bool) (a s h : Q) (lo hi : option Q) (bends : list (Q * Q)) : bounded :=
  match bends with
  | [] => least_parabola integer a s h lo hi
  | (w, c) :: rest =>
      let left hi := least_bent integer a (sub s w) (add h (mul w c)) lo hi rest in
      let right lo := least_bent integer a (add s w) (sub h (mul w c)) lo hi rest in
      if match hi with Some u => at_most u c | None => false end then left hi
      else if match lo with Some l => at_most c l | None => false end then right lo
      else lesser (left (Some c)) (right (Some c))
  end.

Fixpoint bent (bends : list (Q * Q)) (v : Q) : Q :=
  match bends with [] => 0 | (w, c) :: rest => w * Qabs (v - c) + bent rest v end.

Lemma parabola_moved a s h s' h' v :
  s' == s -> h' == h -> parabola a s' h' v == parabola a s h v.
Proof. intros S H. unfold parabola. now rewrite S, H. Qed.

Theorem least_bent_is_a_bound integer v : kind_of integer v -> forall bends a s h lo hi,
  above lo v -> below hi v ->
  bounds (least_bent integer a s h lo hi bends) (parabola a s h v + bent bends v).
Proof.
  intro K. induction bends as [|[w c] rest IH]; intros a s h lo hi Lo Hi; simpl.
  { apply (bounds_same _ (parabola a s h v)); [ring|]. now apply least_parabola_is_a_bound. }
  assert (L : forall hi', v <= c -> below hi' v ->
    bounds (least_bent integer a (sub s w) (add h (mul w c)) lo hi' rest)
           (parabola a s h v + (w * Qabs (v - c) + bent rest v))).
  { intros hi' C B. eapply bounds_same; [|apply IH; eassumption].
    rewrite Qabs_neg by lra.
    rewrite (parabola_moved a (s - w) (h + w * c)) by (rewrite ?sub_is, ?add_is, ?mul_is; ring).
    unfold parabola. ring. }
  assert (R : forall lo', c <= v -> above lo' v ->
    bounds (least_bent integer a (add s w) (sub h (mul w c)) lo' hi rest)
           (parabola a s h v + (w * Qabs (v - c) + bent rest v))).
  { intros lo' C B. eapply bounds_same; [|apply IH; eassumption].
    rewrite Qabs_pos by lra.
    rewrite (parabola_moved a (s + w) (h - w * c)) by (rewrite ?sub_is, ?add_is, ?mul_is; ring).
    unfold parabola. ring. }
  destruct hi as [u|]; [compare u c; [apply L; simpl in *; lra|]|];
  (destruct lo as [l|]; [compare c l; [apply R; simpl in *; lra|]|]);
  (destruct (Qlt_le_dec v c);
   [apply lesser_left, L; simpl; lra | apply lesser_right, R; simpl; lra]).
Qed.

(** * All pieces but tables, added up *)

Record sum_of_pieces : Type := Sum { square : Q; slope : Q; height : Q; bends : list (Q * Q) }.

Definition add_piece (p : piece) (t : sum_of_pieces) : sum_of_pieces :=
  match p with
  | Linear w => Sum (square t) (add (slope t) w) (height t) (bends t)
  | Square w c =>
      let pull := mul w c in
      Sum (add (square t) w) (sub (slope t) (mul 2 pull)) (add (height t) (mul pull c)) (bends t)
  | Absolute w c => Sum (square t) (slope t) (height t) ((w, c) :: bends t)
  | Table _ _ => t
  end.

Definition added (ps : list piece) (charge : Q) : sum_of_pieces :=
  fold_right add_piece (Sum 0 (- charge) 0 []) ps.

Definition is_table (p : piece) : bool := match p with Table _ _ => true | _ => false end.

Definition sum_at (t : sum_of_pieces) (v : Q) : Q :=
  parabola (square t) (slope t) (height t) v + bent (bends t) v.

Lemma added_is ps charge v :
  existsb is_table ps = false -> sum_at (added ps charge) v == cost_of ps v - charge * v.
Proof.
  induction ps as [|p rest IH]; simpl; intro T.
  { unfold sum_at, parabola. simpl. ring. }
  apply orb_false_iff in T. destruct T as [P T]. specialize (IH T). clear T.
  change (fold_right add_piece (Sum 0 (- charge) 0 []) rest) with (added rest charge).
  set (t := added rest charge) in *. unfold sum_at, parabola in *.
  destruct p as [w|w c|w c|]; cbn [piece_cost add_piece square slope height bends] in *;
  try discriminate.
  - rewrite add_is. transitivity (w * v + (cost_of rest v - charge * v)); [rewrite <- IH|]; ring.
  - rewrite !add_is, !sub_is, !mul_is.
    transitivity (w * ((v - c) * (v - c)) + (cost_of rest v - charge * v)); [rewrite <- IH|]; ring.
  - change (bent ((w, c) :: bends t) v) with (w * Qabs (v - c) + bent (bends t) v).
    transitivity (w * Qabs (v - c) + (cost_of rest v - charge * v)); [rewrite <- IH|]; ring.
Qed.

(** * Tables: their whole numbers are tried one by one *)

Definition above_b (limit : option Q) (v : Q) : bool :=
  match limit with None => true | Some l => at_most l v end.

Definition below_b (limit : option Q) (v : Q) : bool :=
  match limit with None => true | Some u => at_most v u end.

Definition piece_allows_b (p : piece) (v : Q) : bool :=
  match p with
  | Table first costs =>
      whole_number v && match entry costs (Qfloor v - first) with Some _ => true | None => false end
  | _ => true
  end.

Lemma above_b_true limit v : above_b limit v = true <-> above limit v.
Proof. destruct limit; simpl; [apply at_most_true | tauto]. Qed.

Lemma below_b_true limit v : below_b limit v = true <-> below limit v.
Proof. destruct limit; simpl; [apply at_most_true | tauto]. Qed.

Lemma piece_allows_b_true p v : piece_allows_b p v = true <-> piece_allows p v.
Proof.
  destruct p as [| | |first costs]; simpl; try tauto. split.
  - intro E. apply andb_true_iff in E. destruct E as [W E].
    destruct (entry costs (Qfloor v - first)) as [c|] eqn:C; try discriminate.
    exists (Qfloor v), c. split; [|exact C]. now apply Qeq_bool_iff.
  - intros (z & c & V & C). assert (F : Qfloor v = z) by (rewrite V; apply Qfloor_Z).
    apply andb_true_iff. split.
    + apply Qeq_bool_iff. rewrite F. exact V.
    + now rewrite F, C.
Qed.

(** Sums of pieces in short fractions. *)
Definition piece_at (p : piece) (v : Q) : Q :=
  match p with
  | Linear w => mul w v
  | Square w c => let away := sub v c in mul w (mul away away)
  | Absolute w c => mul w (Qabs (sub v c))
  | Table _ _ => piece_cost p v
  end.

Lemma piece_at_is p v : piece_at p v == piece_cost p v.
Proof.
  destruct p; simpl; rewrite ?mul_is, ?sub_is; try reflexivity.
Qed.

Definition cost_at (ps : list piece) (v : Q) : Q :=
  fold_right (fun p sum => add (piece_at p v) sum) 0 ps.

Lemma cost_of_same ps v w : v == w -> cost_of ps v == cost_of ps w.
Proof.
  intro E. induction ps as [|p rest IH]; [reflexivity|]. cbn [cost_of]. rewrite IH.
  destruct p; cbn [piece_cost]; rewrite E; reflexivity.
Qed.

Lemma cost_at_is ps v : cost_at ps v == cost_of ps v.
Proof. induction ps as [|p rest IH]; simpl; [reflexivity|]. now rewrite add_is, piece_at_is, IH. Qed.

(** The cost at a whole number z where the table's own cost is c; [Empty] if z is not allowed. *)
Definition cell (lo hi : option Q) (others : list piece) (charge : Q) (z : Z) (c : Q) : bounded :=
  let v := inject_Z z in
  if above_b lo v && below_b hi v && forallb (fun p => piece_allows_b p v) others
  then At (sub (add c (cost_at others v)) (mul charge v)) else Empty.

Fixpoint least_cell (lo hi : option Q) (others : list piece) (charge : Q) (z : Z) (costs : list Q)
    (so_far : bounded) : bounded :=
  match costs with
  | [] => so_far
  | c :: rest =>
      least_cell lo hi others charge (z + 1) rest (lesser so_far (cell lo hi others charge z c))
  end.

Lemma least_cell_so_far lo hi others charge costs cost : forall z so_far,
  bounds so_far cost -> bounds (least_cell lo hi others charge z costs so_far) cost.
Proof.
  induction costs as [|c rest IH]; simpl; intros z so_far B; [exact B|].
  apply IH, lesser_left, B.
Qed.

Lemma least_cell_is_a_bound lo hi others charge z v : v == inject_Z z ->
  above lo v -> below hi v -> Forall (fun p => piece_allows p v) others ->
  forall costs first so_far c, entry costs (z - first) = Some c ->
  bounds (least_cell lo hi others charge first costs so_far) (c + cost_of others v - charge * v).
Proof.
  intros V Lo Hi All. induction costs as [|c rest IH]; simpl; intros first so_far d E; [discriminate|].
  destruct (Z.eqb_spec (z - first) 0) as [F|F].
  - injection E as <-. assert (first = z) as -> by lia.
    apply least_cell_so_far, lesser_right. unfold cell.
    assert (S : above_b lo (inject_Z z) && below_b hi (inject_Z z)
      && forallb (fun p => piece_allows_b p (inject_Z z)) others = true).
    { rewrite !andb_true_iff. split; [split|].
      - apply above_b_true. destruct lo; simpl in *; [now rewrite <- V | exact I].
      - apply below_b_true. destruct hi; simpl in *; [now rewrite <- V | exact I].
      - apply forallb_forall. intros p P. rewrite Forall_forall in All. apply piece_allows_b_true.
        specialize (All p P). destruct p as [| | |f cs]; simpl in *; try exact I.
        destruct All as (y & k & Y & Kk). exists y, k. split; [now rewrite <- V | exact Kk]. }
    rewrite S. simpl.
    assert (Same : cost_at others (inject_Z z) == cost_of others v).
    { rewrite cost_at_is. symmetry. now apply cost_of_same. }
    rewrite sub_is, add_is, mul_is, Same, <- V. lra.
  - apply IH. replace (z - (first + 1))%Z with (z - first - 1)%Z by lia. exact E.
Qed.

(** * The minimum of a variable *)

(** The first table among the pieces, and the pieces without it. *)
Fixpoint table_of (ps : list piece) : option (Z * list Q * list piece) :=
  match ps with
  | [] => None
  | Table first costs :: rest => Some (first, costs, rest)
  | p :: rest =>
      match table_of rest with
      | Some (first, costs, others) => Some (first, costs, p :: others)
      | None => None
      end
  end.

Definition minimum (x : variable) (charge : Q) : bounded :=
  match table_of (pieces x) with
  | Some (first, costs, others) => least_cell (lower x) (upper x) others charge first costs Empty
  | None =>
      let t := added (pieces x) charge in
      least_bent (whole x) (square t) (slope t) (height t) (lower x) (upper x) (bends t)
  end.

Lemma no_table_of ps : table_of ps = None -> existsb is_table ps = false.
Proof.
  induction ps as [|p rest IH]; simpl; [reflexivity|].
  destruct p; simpl; try discriminate; destruct (table_of rest) as [[[? ?] ?]|]; try discriminate; auto.
Qed.

Lemma table_of_is ps first costs others v : table_of ps = Some (first, costs, others) ->
  Forall (fun p => piece_allows p v) ps ->
  exists z c, v == inject_Z z /\ entry costs (z - first) = Some c
    /\ Forall (fun p => piece_allows p v) others /\ cost_of ps v == c + cost_of others v.
Proof.
  revert others. induction ps as [|p rest IH]; simpl; intros others E All; [discriminate|].
  inversion All as [|? ? P Rest]; subst.
  destruct p as [w|w c|w c|f cs];
  [destruct (table_of rest) as [[[f cs] others']|]; try discriminate; injection E as <- <- <-;
   destruct (IH others' eq_refl Rest) as (z & d & V & D & O & S); exists z, d;
   repeat split; auto; simpl; rewrite S; ring .. |].
  injection E as <- <- <-. simpl in P. destruct P as (z & d & V & D).
  exists z, d. repeat split; auto. simpl.
  assert (Qfloor v = z) as -> by (rewrite V; apply Qfloor_Z). now rewrite D.
Qed.

Theorem minimum_is_a_bound x charge v :
  allows x v -> bounds (minimum x charge) (cost_of (pieces x) v - charge * v).
Proof.
  intros (Lo & Hi & K & All). unfold minimum.
  destruct (table_of (pieces x)) as [[[first costs] others]|] eqn:T.
  - destruct (table_of_is _ _ _ _ v T All) as (z & c & V & C & O & S).
    apply (bounds_same _ (c + cost_of others v - charge * v)); [rewrite S; ring|].
    now apply least_cell_is_a_bound with (z := z).
  - apply no_table_of in T.
    apply (bounds_same _ (sum_at (added (pieces x) charge) v)); [now apply added_is|].
    now apply least_bent_is_a_bound.
Qed.

(** * The minimum is attained: it is the least cost, and not only a bound *)

Lemma lesser_is a b c : lesser a b = At c -> a = At c \/ b = At c.
Proof.
  destruct a as [|a|], b as [|b|]; simpl; try discriminate; auto.
  destruct (at_most a b); auto.
Qed.

Lemma raised_above_back integer lo v : above (raised integer lo) v -> above lo v.
Proof.
  destruct lo as [l|], integer; simpl; try tauto. pose proof (Qle_ceiling l). lra.
Qed.

Lemma lowered_below_back integer hi v : below (lowered integer hi) v -> below hi v.
Proof.
  destruct hi as [u|], integer; simpl; try tauto. pose proof (Qfloor_le u). lra.
Qed.

(** A value moved into an interval that is not empty lies in it. *)
Lemma clamped_inside lo hi t : crossed lo hi = false ->
  above lo (no_less lo (no_more hi t)) /\ below hi (no_less lo (no_more hi t)).
Proof.
  unfold crossed, no_less, no_more.
  destruct lo as [l|], hi as [u|]; simpl; intro C; try (compare t u); try (compare l t); try (compare l u);
  simpl in *; try discriminate; try (split; lra); try (compare l t; split; lra).
Qed.

Lemma ends_inside lo hi : crossed lo hi = false ->
  (forall l, lo = Some l -> above lo l /\ below hi l) /\ (forall u, hi = Some u -> above lo u /\ below hi u).
Proof.
  unfold crossed. destruct lo as [l|], hi as [u|]; simpl; intro C;
  (split; [intros k E | intros k E]); try discriminate; injection E as <-; simpl; try (split; [lra|exact I]);
  try (split; [exact I|lra]); apply negb_false_iff, at_most_true in C; split; lra.
Qed.

Lemma least_parabola_is_attained integer a s h lo hi b :
  least_parabola integer a s h lo hi = At b ->
  exists v, kind_of integer v /\ above lo v /\ below hi v /\ parabola a s h v == b.
Proof.
  unfold least_parabola. destruct (crossed _ _) eqn:C; [discriminate|].
  assert (Into : forall v c, kind_of integer v ->
    above (raised integer lo) v /\ below (lowered integer hi) v -> parabola a s h v == c -> c == b ->
    exists v, kind_of integer v /\ above lo v /\ below hi v /\ parabola a s h v == b).
  { intros v c K [A B] P E. exists v. split; [exact K|]. split; [now apply raised_above_back in A|].
    split; [now apply lowered_below_back in B|]. now rewrite P. }
  destruct (ends_inside _ _ C) as [Low High].
  assert (Left : forall l, raised integer lo = Some l -> parabola_at a s h l == b ->
    exists v, kind_of integer v /\ above lo v /\ below hi v /\ parabola a s h v == b).
  { intros l L E. eapply (Into l); [now apply (raised_kind integer l lo) | now apply Low | | exact E].
    symmetry. apply parabola_at_is. }
  assert (Right : forall u, lowered integer hi = Some u -> parabola_at a s h u == b ->
    exists v, kind_of integer v /\ above lo v /\ below hi v /\ parabola a s h v == b).
  { intros u U E. eapply (Into u); [now apply (lowered_kind integer u hi) | now apply High | | exact E].
    symmetry. apply parabola_at_is. }
  compare a 0; simpl negb; cbv iota.
  - compare 0 a; simpl negb; cbv iota.
    + compare s 0; simpl negb; cbv iota.
      * compare 0 s; simpl negb; cbv iota.
        -- intro H. injection H as <-.
           eapply (Into (no_less (raised integer lo) (no_more (lowered integer hi) 0))).
           ++ apply clamped_kind. intros _. now exists 0%Z.
           ++ now apply clamped_inside.
           ++ reflexivity.
           ++ unfold parabola. assert (a == 0) as -> by lra. assert (s == 0) as -> by lra. ring.
        -- destruct (lowered integer hi) as [u|] eqn:U; [|discriminate]. intro H. injection H as H.
           apply (Right u eq_refl). now rewrite H.
      * destruct (raised integer lo) as [l|] eqn:L; [|discriminate]. intro H. injection H as H.
        apply (Left l eq_refl). now rewrite H.
    + destruct (raised integer lo) as [l|] eqn:L, (lowered integer hi) as [u|] eqn:U; try discriminate.
      intro H. apply lesser_is in H. destruct H as [H|H]; injection H as H;
      [apply (Left l eq_refl) | apply (Right u eq_refl)]; now rewrite H.
  - intro H. injection H as H.
    eapply (Into (no_less (raised integer lo) (no_more (lowered integer hi) (vertex integer a s)))).
    + apply clamped_kind, vertex_kind.
    + now apply clamped_inside.
    + symmetry. apply parabola_at_is.
    + now rewrite H.
Qed.

Lemma least_bent_is_attained integer b : forall kinks a s h lo hi,
  least_bent integer a s h lo hi kinks = At b ->
  exists v, kind_of integer v /\ above lo v /\ below hi v /\ parabola a s h v + bent kinks v == b.
Proof.
  induction kinks as [|[w c] rest IH]; intros a s h lo hi; simpl.
  { intro H. destruct (least_parabola_is_attained _ _ _ _ _ _ _ H) as (v & K & A & B & P).
    exists v. repeat split; auto. rewrite P. ring. }
  assert (L : forall hi', least_bent integer a (sub s w) (add h (mul w c)) lo hi' rest = At b ->
    (forall v, below hi' v -> v <= c /\ below hi v) ->
    exists v, kind_of integer v /\ above lo v /\ below hi v
      /\ parabola a s h v + (w * Qabs (v - c) + bent rest v) == b).
  { intros hi' H N. destruct (IH _ _ _ _ _ H) as (v & K & A & B & P). destruct (N v B) as [C B'].
    exists v. repeat split; auto. rewrite <- P.
    rewrite (parabola_moved a (s - w) (h + w * c) (sub s w) (add h (mul w c)))
      by (rewrite ?sub_is, ?add_is, ?mul_is; ring).
    rewrite Qabs_neg by lra. unfold parabola. ring. }
  assert (R : forall lo', least_bent integer a (add s w) (sub h (mul w c)) lo' hi rest = At b ->
    (forall v, above lo' v -> c <= v /\ above lo v) ->
    exists v, kind_of integer v /\ above lo v /\ below hi v
      /\ parabola a s h v + (w * Qabs (v - c) + bent rest v) == b).
  { intros lo' H N. destruct (IH _ _ _ _ _ H) as (v & K & A & B & P). destruct (N v A) as [C A'].
    exists v. repeat split; auto. rewrite <- P.
    rewrite (parabola_moved a (s + w) (h - w * c) (add s w) (sub h (mul w c)))
      by (rewrite ?sub_is, ?add_is, ?mul_is; ring).
    rewrite Qabs_pos by lra. unfold parabola. ring. }
  destruct hi as [u|]; [compare u c|];
  [intro H; apply (L (Some u) H); simpl; intros v V; split; lra | |];
  (destruct lo as [l|]; [compare c l|];
   [intro H; apply (R (Some l) H); simpl; intros v V; split; lra | |]);
  (intro H; apply lesser_is in H; destruct H as [H|H];
   [apply (L (Some c) H) | apply (R (Some c) H)]; simpl; intros v V; split; try exact I; lra).
Qed.

Lemma least_cell_is_attained lo hi others charge b : forall costs first so_far,
  least_cell lo hi others charge first costs so_far = At b ->
  so_far = At b \/ exists z c, entry costs (z - first) = Some c /\ cell lo hi others charge z c = At b.
Proof.
  induction costs as [|c rest IH]; simpl; intros first so_far H; [now left|].
  destruct (IH _ _ H) as [E|(z & d & D & E)].
  - apply lesser_is in E. destruct E as [E|E]; [now left|]. right. exists first, c.
    rewrite Z.sub_diag. now split.
  - right. exists z, d. split; [|exact E].
    assert (P : (first + 1 <= z)%Z).
    { clear - D. destruct (Z.le_gt_cases (first + 1) z) as [L|G]; [exact L|]. exfalso.
      assert (N : forall costs k, (k < 0)%Z -> entry costs k = None).
      { clear. induction costs as [|c rest IH]; simpl; intros k K; [reflexivity|].
        destruct (Z.eqb_spec k 0); [lia|]. apply IH. lia. }
      rewrite N in D by lia. discriminate. }
    destruct (Z.eqb_spec (z - first) 0); [lia|].
    replace (z - first - 1)%Z with (z - (first + 1))%Z by lia. exact D.
Qed.

Lemma table_of_back ps first costs others z c v : table_of ps = Some (first, costs, others) ->
  v == inject_Z z -> entry costs (z - first) = Some c -> Forall (fun p => piece_allows p v) others ->
  Forall (fun p => piece_allows p v) ps /\ cost_of ps v == c + cost_of others v.
Proof.
  revert others. induction ps as [|p rest IH]; simpl; intros others E V C All; [discriminate|].
  destruct p as [w|w d|w d|f cs];
  [destruct (table_of rest) as [[[f cs] others']|]; try discriminate; injection E as <- <- <-;
   inversion All as [|? ? P Rest]; subst; destruct (IH others' eq_refl V C Rest) as [F S];
   (split; [constructor; [exact I | exact F] | simpl; rewrite S; ring]) .. |].
  injection E as <- <- <-. split.
  - constructor; [|exact All]. exists z, c. now split.
  - simpl. assert (Qfloor v = z) as -> by (rewrite V; apply Qfloor_Z). now rewrite C.
Qed.

Theorem minimum_is_attained x charge b :
  minimum x charge = At b -> exists v, allows x v /\ cost_of (pieces x) v - charge * v == b.
Proof.
  unfold minimum. destruct (table_of (pieces x)) as [[[first costs] others]|] eqn:T; intro H.
  - destruct (least_cell_is_attained _ _ _ _ _ _ _ _ H) as [E|(z & c & C & E)]; [discriminate|].
    unfold cell in E. destruct (_ && _ && _) eqn:S; [|discriminate]. injection E as E.
    rewrite !andb_true_iff in S. destruct S as [[L U] O].
    assert (All : Forall (fun p => piece_allows p (inject_Z z)) others).
    { apply Forall_forall. intros p P. rewrite forallb_forall in O. apply piece_allows_b_true. auto. }
    destruct (table_of_back _ _ _ _ z c (inject_Z z) T (Qeq_refl _) C All) as [F Cost].
    exists (inject_Z z). split.
    + split; [now apply above_b_true|]. split; [now apply below_b_true|]. split; [|exact F].
      intros _. now exists z.
    + rewrite <- E, sub_is, add_is, mul_is, cost_at_is, Cost. reflexivity.
  - apply no_table_of in T. destruct (least_bent_is_attained _ _ _ _ _ _ _ _ H) as (v & K & A & B & P).
    exists v. split.
    + split; [exact A|]. split; [exact B|]. split; [exact K|].
      apply Forall_forall. intros p In. destruct p; simpl; try exact I.
      assert (X : existsb is_table (pieces x) = true).
      { apply existsb_exists. eexists. split; [exact In | reflexivity]. }
      congruence.
    + rewrite <- (added_is _ _ _ T). exact P.
Qed.
