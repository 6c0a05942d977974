(** Arithmetic in 64 bits: below the bound that a certificate establishes first, it is that of whole numbers.

    NumPy and Numba compute with int64: every sum, difference and product is reduced modulo 2⁶⁴ to a number from −2⁶³
    to 2⁶³ − 1. A certificate may use it after it has bounded every intermediate value; above the bound it uses Python
    integers. Here it is proved that both give the same numbers. *)

From Coq Require Import ZArith Lia List Bool Permutation.
Import ListNotations.
Open Scope Z_scope.

(** * Words *)

Definition fits (z : Z) : Prop := - 2 ^ 63 <= z < 2 ^ 63.

(** Two's complement: the number from −2⁶³ to 2⁶³ − 1 that differs from z by a multiple of 2⁶⁴. *)
Definition wrap (z : Z) : Z := (z + 2 ^ 63) mod 2 ^ 64 - 2 ^ 63.

Lemma wrap_fits z : fits (wrap z).
Proof. unfold fits, wrap. pose proof (Z.mod_pos_bound (z + 2 ^ 63) (2 ^ 64) eq_refl). lia. Qed.

Lemma wrap_is z : fits z -> wrap z = z.
Proof. unfold fits, wrap. intro F. rewrite Z.mod_small; lia. Qed.

Lemma wrap_multiple z : exists k, wrap z = z + k * 2 ^ 64.
Proof.
  unfold wrap. exists (- ((z + 2 ^ 63) / 2 ^ 64)).
  pose proof (Z.div_mod (z + 2 ^ 63) (2 ^ 64) ltac:(discriminate)). lia.
Qed.

Lemma wrap_same a b k : a = b + k * 2 ^ 64 -> wrap a = wrap b.
Proof.
  intros ->. unfold wrap. f_equal. replace (b + k * 2 ^ 64 + 2 ^ 63) with (b + 2 ^ 63 + k * 2 ^ 64) by ring.
  apply Z.mod_add. discriminate.
Qed.

(** Sums, differences, products of words, as the processor computes them. *)
Definition plus64 (a b : Z) : Z := wrap (a + b).
Definition minus64 (a b : Z) : Z := wrap (a - b).
Definition times64 (a b : Z) : Z := wrap (a * b).

(** The absolute value of −2⁶³ is −2⁶³. *)
Definition abs64 (a : Z) : Z := wrap (Z.abs a).

(** What was reduced before may as well be reduced at the end. *)
Lemma plus64_wrap a b : plus64 (wrap a) b = plus64 a b.
Proof. destruct (wrap_multiple a) as [k ->]. apply (wrap_same _ _ k). ring. Qed.

Lemma plus64_wrap_r a b : plus64 a (wrap b) = plus64 a b.
Proof. destruct (wrap_multiple b) as [k ->]. apply (wrap_same _ _ k). ring. Qed.

Lemma plus64_is a b : fits (a + b) -> plus64 a b = a + b.
Proof. apply wrap_is. Qed.

Lemma minus64_is a b : fits (a - b) -> minus64 a b = a - b.
Proof. apply wrap_is. Qed.

Lemma times64_is a b : fits (a * b) -> times64 a b = a * b.
Proof. apply wrap_is. Qed.

(** * Any expression in sums, differences, products, absolute values, minima, maxima and choices

    It is what array code computes for each entry. The k-th input is an entry of the data, the answer or the witness,
    or a number computed before. *)

Inductive expression : Type :=
| Input (k : nat)
| Constant (z : Z)
| Plus (a b : expression)
| Minus (a b : expression)
| Times (a b : expression)
| Quotient (a b : expression)                 (** rounded down, as Python's [//]; by 0 it is 0, as in NumPy *)
| Magnitude (a : expression)
| Least (a b : expression)
| Most (a b : expression)
| Choice (a b c d : expression).              (** c where a ≤ b, d elsewhere *)

Fixpoint exactly (input : nat -> Z) (e : expression) : Z :=
  match e with
  | Input k => input k
  | Constant z => z
  | Plus a b => exactly input a + exactly input b
  | Minus a b => exactly input a - exactly input b
  | Times a b => exactly input a * exactly input b
  | Quotient a b => exactly input a / exactly input b
  | Magnitude a => Z.abs (exactly input a)
  | Least a b => Z.min (exactly input a) (exactly input b)
  | Most a b => Z.max (exactly input a) (exactly input b)
  | Choice a b c d => if exactly input a <=? exactly input b then exactly input c else exactly input d
  end.

Fixpoint in_words (input : nat -> Z) (e : expression) : Z :=
  match e with
  | Input k => input k
  | Constant z => wrap z
  | Plus a b => plus64 (in_words input a) (in_words input b)
  | Minus a b => minus64 (in_words input a) (in_words input b)
  | Times a b => times64 (in_words input a) (in_words input b)
  | Quotient a b => wrap (in_words input a / in_words input b)
  | Magnitude a => abs64 (in_words input a)
  | Least a b => Z.min (in_words input a) (in_words input b)
  | Most a b => Z.max (in_words input a) (in_words input b)
  | Choice a b c d =>
      if in_words input a <=? in_words input b then in_words input c else in_words input d
  end.

(** The established bound: on the absolute value of the expression, from those of its inputs. *)
Fixpoint reach (limit : nat -> Z) (e : expression) : Z :=
  match e with
  | Input k => limit k
  | Constant z => Z.abs z
  | Plus a b | Minus a b => reach limit a + reach limit b
  | Times a b => reach limit a * reach limit b
  | Quotient a _ | Magnitude a => reach limit a
  | Least a b | Most a b => Z.max (reach limit a) (reach limit b)
  | Choice _ _ c d => Z.max (reach limit c) (reach limit d)
  end.

(** The guard: the bound of every intermediate value is below 2⁶³. *)
Fixpoint guarded (limit : nat -> Z) (e : expression) : bool :=
  (reach limit e <? 2 ^ 63) &&
  match e with
  | Input _ | Constant _ => true
  | Magnitude a => guarded limit a
  | Plus a b | Minus a b | Times a b | Quotient a b | Least a b | Most a b => guarded limit a && guarded limit b
  | Choice a b c d => guarded limit a && guarded limit b && guarded limit c && guarded limit d
  end.

Lemma quotient_reach a b : Z.abs (a / b) <= Z.abs a.
Proof.
  destruct (Z.eq_dec b 0) as [->|N]; [rewrite Zdiv_0_r; lia|].
  pose proof (Z.div_mod a b N). destruct (Z_lt_ge_dec b 0) as [B|B].
  - pose proof (Z.mod_neg_bound a b B). nia.
  - pose proof (Z.mod_pos_bound a b ltac:(lia)). nia.
Qed.

Theorem reach_is_a_bound input limit e : (forall k, Z.abs (input k) <= limit k) ->
  Z.abs (exactly input e) <= reach limit e.
Proof.
  intro L. induction e as [k|z|a A b B|a A b B|a A b B|a A b B|a A|a A b B|a A b B|a A b B c C d D];
    cbn [exactly reach]; try lia; try apply L.
  - rewrite Z.abs_mul. apply Z.mul_le_mono_nonneg; lia.
  - pose proof (quotient_reach (exactly input a) (exactly input b)). lia.
  - destruct (_ <=? _); lia.
Qed.

(** Below the bound, words give the same number. *)
Theorem guarded_is_exact input limit e : (forall k, Z.abs (input k) <= limit k) ->
  guarded limit e = true -> in_words input e = exactly input e.
Proof.
  intro L. assert (W : forall f, (reach limit f <? 2 ^ 63) = true -> wrap (exactly input f) = exactly input f).
  { intros f G. apply Z.ltb_lt in G. pose proof (reach_is_a_bound input limit f L).
    apply wrap_is. unfold fits. lia. }
  induction e as [k|z|a A b B|a A b B|a A b B|a A b B|a A|a A b B|a A b B|a A b B c C d D]; intro G;
    cbn [guarded] in G; apply andb_true_iff in G; destruct G as [G1 G]; specialize (W _ G1);
    rewrite ?andb_true_iff in G; cbn [exactly in_words] in *; unfold plus64, minus64, times64, abs64.
  - reflexivity.
  - exact W.
  - destruct G as [Ga Gb]. now rewrite (A Ga), (B Gb).
  - destruct G as [Ga Gb]. now rewrite (A Ga), (B Gb).
  - destruct G as [Ga Gb]. now rewrite (A Ga), (B Gb).
  - destruct G as [Ga Gb]. now rewrite (A Ga), (B Gb).
  - now rewrite (A G).
  - destruct G as [Ga Gb]. now rewrite (A Ga), (B Gb).
  - destruct G as [Ga Gb]. now rewrite (A Ga), (B Gb).
  - destruct G as [[[Ga Gb] Gc] Gd]. now rewrite (A Ga), (B Gb), (C Gc), (D Gd).
Qed.

(** So do whole arrays, entry by entry. *)
Corollary arrays_are_exact inputs limit e :
  (forall input, In input inputs -> forall k, Z.abs (input k) <= limit k) -> guarded limit e = true ->
  map (fun input => in_words input e) inputs = map (fun input => exactly input e) inputs.
Proof. intros L G. apply map_ext_in. intros input I. now apply (guarded_is_exact _ limit); [apply L|]. Qed.

(** The guard of [models.check.checker]: 4·most < 2⁶², where most is at least the largest number of each kind.
    Slopes of squares, u·w in [Input 0], value, center; cells less their charge: cell, charge, units from the value. *)
Definition limits (a b c : Z) (k : nat) : Z := match k with O => a | S O => b | _ => c end.

Theorem checker_fits u w v c charge cell away most :
  0 <= v -> 0 <= c -> 0 <= charge -> 0 <= cell -> 1 <= w -> 1 <= u <= 2 ^ 48 -> 1 <= away <= 2 ^ 48 ->
  4 * most < 2 ^ 62 ->
  let slope := Times (Times (Constant 2) (Input 0)) (Minus (Input 1) (Input 2)) in
  (2 * w * (v + c + 1) + charge <= most ->
    guarded (limits w v c) (Plus slope (Input 0)) = true /\ guarded (limits w v c) (Minus slope (Input 0)) = true)
  /\ (u * cell + charge * away <= most ->
    guarded (limits cell charge away) (Minus (Times (Constant u) (Input 0)) (Times (Input 1) (Input 2))) = true).
Proof.
  intros V C K Cell W U A M slope. unfold slope. cbn [guarded reach limits]. change (Z.abs 2) with 2.
  rewrite (Z.abs_eq u) by lia. assert (0 <= (w - 1) * (v + c)) by (apply Z.mul_nonneg_nonneg; lia).
  assert (0 <= charge * (away - 1)) by (apply Z.mul_nonneg_nonneg; lia).
  assert (0 <= (u - 1) * cell) by (apply Z.mul_nonneg_nonneg; lia).
  split; [intro S; split | intro S]; rewrite !andb_true_iff, !Z.ltb_lt; repeat split; lia.
Qed.

(** * Sums, in any order *)

Definition sum (xs : list Z) : Z := fold_right Z.add 0 xs.

(** Σ |x|: the established bound of a sum, and of each part of it. *)
Definition weight (xs : list Z) : Z := sum (map Z.abs xs).

Lemma sum_app xs ys : sum (xs ++ ys) = sum xs + sum ys.
Proof. unfold sum. induction xs as [|x xs IH]; simpl; [reflexivity|]. rewrite IH. ring. Qed.

Lemma sum_order xs ys : Permutation xs ys -> sum xs = sum ys.
Proof. induction 1; unfold sum in *; simpl; lia. Qed.

Lemma weight_app xs ys : weight (xs ++ ys) = weight xs + weight ys.
Proof. unfold weight. now rewrite map_app, sum_app. Qed.

Lemma weight_order xs ys : Permutation xs ys -> weight xs = weight ys.
Proof. intro P. unfold weight. now apply sum_order, Permutation_map. Qed.

Lemma sum_within xs : Z.abs (sum xs) <= weight xs.
Proof. unfold weight, sum. induction xs as [|x xs IH]; simpl; lia. Qed.

(** Usually the bound is the number of terms times the largest of them. *)
Lemma weight_reach limit xs : (forall x, In x xs -> Z.abs x <= limit) -> weight xs <= Z.of_nat (length xs) * limit.
Proof.
  unfold weight, sum. induction xs as [|x xs IH]; intro L; simpl length; simpl map; simpl fold_right; [lia|].
  specialize (IH (fun y I => L y (or_intror I))). specialize (L x (or_introl eq_refl)). lia.
Qed.

(** How a sum is bracketed: from left to right, in halves, or in several lanes, which begin at 0. *)
Inductive bracketed : Type := Term (z : Z) | Join (a b : bracketed).

Fixpoint terms (t : bracketed) : list Z :=
  match t with Term z => [z] | Join a b => terms a ++ terms b end.

Fixpoint sum64 (t : bracketed) : Z :=
  match t with Term z => wrap z | Join a b => plus64 (sum64 a) (sum64 b) end.

Lemma sum64_wraps t : sum64 t = wrap (sum (terms t)).
Proof.
  induction t as [z|a A b B]; cbn [sum64 terms]; [unfold sum; simpl; f_equal; ring|].
  now rewrite A, B, plus64_wrap, plus64_wrap_r, sum_app.
Qed.

Lemma sum_zeros m xs : sum (repeat 0 m ++ xs) = sum xs.
Proof. rewrite sum_app. unfold sum at 1. induction m; simpl in *; lia. Qed.

(** However NumPy orders and brackets a sum: if it fits, so that it is right. *)
Theorem sum_is_exact xs m t : Permutation (terms t) (repeat 0 m ++ xs) -> weight xs < 2 ^ 63 -> sum64 t = sum xs.
Proof.
  intros P W. rewrite sum64_wraps, (sum_order _ _ P), sum_zeros.
  apply wrap_is. pose proof (sum_within xs). unfold fits. lia.
Qed.

(** Σ over the entries of any guarded expression. *)
Theorem sum_of_expressions inputs limit e m t :
  (forall input, In input inputs -> forall k, Z.abs (input k) <= limit k) ->
  guarded limit e = true -> Z.of_nat (length inputs) * reach limit e < 2 ^ 63 ->
  Permutation (terms t) (repeat 0 m ++ map (fun input => in_words input e) inputs) ->
  sum64 t = sum (map (fun input => exactly input e) inputs).
Proof.
  intros L G N P.
  rewrite (arrays_are_exact inputs limit e L G) in P. apply (sum_is_exact _ m _ P).
  enough (weight (map (fun input => exactly input e) inputs) <= Z.of_nat (length inputs) * reach limit e) by lia.
  erewrite <- (map_length _ inputs). apply weight_reach. intros x I. apply in_map_iff in I.
  destruct I as (input & <- & I). now apply reach_is_a_bound, L.
Qed.

(** Σ a·b *)
Definition dot (pairs : list (Z * Z)) : Z := sum (map (fun p => fst p * snd p) pairs).

Corollary products_are_exact pairs reach_a reach_b m t :
  (forall a b, In (a, b) pairs -> Z.abs a <= reach_a /\ Z.abs b <= reach_b) ->
  Z.of_nat (length pairs) * (reach_a * reach_b) < 2 ^ 63 ->
  Permutation (terms t) (repeat 0 m ++ map (fun p => times64 (fst p) (snd p)) pairs) ->
  sum64 t = dot pairs.
Proof.
  intros L N P.
  assert (Each : forall p, In p pairs -> Z.abs (fst p * snd p) <= reach_a * reach_b).
  { intros [a b] I. destruct (L a b I). simpl. rewrite Z.abs_mul. apply Z.mul_le_mono_nonneg; lia. }
  assert (E : map (fun p => times64 (fst p) (snd p)) pairs = map (fun p => fst p * snd p) pairs).
  { apply map_ext_in. intros p I. specialize (Each p I). apply times64_is.
    destruct pairs as [|q rest]; [contradiction|]. cbn [length] in N. rewrite Nat2Z.inj_succ in N.
    unfold fits. nia. }
  rewrite E in P. apply (sum_is_exact _ m t P).
  pose proof (weight_reach (reach_a * reach_b) (map (fun p => fst p * snd p) pairs)) as W.
  rewrite map_length in W. enough (weight (map (fun p => fst p * snd p) pairs)
    <= Z.of_nat (length pairs) * (reach_a * reach_b)) by lia.
  apply W. intros x I. apply in_map_iff in I. destruct I as (p & <- & I). now apply Each.
Qed.

(** Sums of segments ([np.add.reduceat]): parts of one array. *)
Corollary segments_are_exact segments m sums :
  weight (concat segments) < 2 ^ 63 ->
  Forall2 (fun xs t => Permutation (terms t) (repeat 0 m ++ xs)) segments sums ->
  map sum64 sums = map sum segments.
Proof.
  intros W P. induction P as [|xs t segments sums T P IH]; [reflexivity|].
  cbn [concat] in W. rewrite weight_app in W.
  assert (0 <= weight (concat segments)) by (pose proof (sum_within (concat segments)); lia).
  assert (0 <= weight xs) by (pose proof (sum_within xs); lia).
  cbn [map]. rewrite IH by lia. f_equal. apply (sum_is_exact xs m t T). lia.
Qed.

(** * Prefix sums ([np.cumsum]) *)

Fixpoint prefixes (so_far : Z) (xs : list Z) : list Z :=
  match xs with [] => [] | x :: rest => (so_far + x) :: prefixes (so_far + x) rest end.

Fixpoint prefixes64 (so_far : Z) (xs : list Z) : list Z :=
  match xs with [] => [] | x :: rest => plus64 so_far x :: prefixes64 (plus64 so_far x) rest end.

Lemma prefixes64_are xs : forall so_far, Z.abs so_far + weight xs < 2 ^ 63 ->
  prefixes64 so_far xs = prefixes so_far xs.
Proof.
  induction xs as [|x xs IH]; intros so_far W; [reflexivity|]. cbn [prefixes prefixes64].
  change (weight (x :: xs)) with (Z.abs x + weight xs) in W.
  assert (0 <= weight xs) by (pose proof (sum_within xs); lia).
  rewrite plus64_is by (unfold fits; lia). f_equal. apply IH. lia.
Qed.

Theorem prefix_sums_are_exact xs : weight xs < 2 ^ 63 -> prefixes64 0 xs = prefixes 0 xs.
Proof. intro W. now apply prefixes64_are. Qed.

(** * Sums into cells ([np.add.at], [np.bincount]) *)

Definition put (cells : nat -> Z) (k : nat) (z : Z) : nat -> Z := fun j => if Nat.eqb j k then z else cells j.

Fixpoint gathered64 (cells : nat -> Z) (entries : list (nat * Z)) : nat -> Z :=
  match entries with
  | [] => cells
  | (k, z) :: rest => gathered64 (put cells k (plus64 (cells k) z)) rest
  end.

(** What belongs to cell j. *)
Definition of_cell (j : nat) (entries : list (nat * Z)) : list Z :=
  map snd (filter (fun e => Nat.eqb j (fst e)) entries).

Lemma gathered64_is entries : forall cells j,
  Z.abs (cells j) + weight (map snd entries) < 2 ^ 63 ->
  gathered64 cells entries j = cells j + sum (of_cell j entries).
Proof.
  induction entries as [|[k z] rest IH]; intros cells j W; [unfold sum; simpl; lia|].
  cbn [gathered64 map snd] in *. unfold of_cell in *. cbn [filter fst].
  change (weight (z :: map snd rest)) with (Z.abs z + weight (map snd rest)) in W.
  assert (0 <= weight (map snd rest)) by (pose proof (sum_within (map snd rest)); lia).
  destruct (Nat.eqb_spec j k) as [->|N].
  - assert (E : put cells k (plus64 (cells k) z) k = cells k + z).
    { unfold put. rewrite Nat.eqb_refl. apply plus64_is. unfold fits. lia. }
    rewrite IH; rewrite E; [|lia]. unfold sum. simpl. ring.
  - assert (E : put cells k (plus64 (cells k) z) j = cells j).
    { unfold put. destruct (Nat.eqb_spec j k); congruence. }
    rewrite IH; rewrite E; lia.
Qed.

Theorem cells_are_exact entries j : weight (map snd entries) < 2 ^ 63 ->
  gathered64 (fun _ => 0) entries j = sum (of_cell j entries).
Proof. intro W. now rewrite gathered64_is. Qed.

(** Sums up a tree, one level after the other: a level's sums weigh no more than what was added up. *)
Theorem cells_weigh_no_more entries js : NoDup js ->
  weight (map (fun j => sum (of_cell j entries)) js) <= weight (map snd entries).
Proof.
  intro D. induction entries as [|[k z] rest IH].
  - unfold weight, of_cell, sum. simpl. induction js as [|j js IHj]; simpl; [lia|].
    inversion D; subst. now apply IHj.
  - cbn [map snd]. change (weight (z :: map snd rest)) with (Z.abs z + weight (map snd rest)).
    enough (weight (map (fun j => sum (of_cell j ((k, z) :: rest))) js)
            <= (if in_dec Nat.eq_dec k js then Z.abs z else 0)
               + weight (map (fun j => sum (of_cell j rest)) js)) by (destruct (in_dec _ _ _); lia).
    clear IH. induction js as [|j js IH]; [simpl; unfold weight, sum; simpl; lia|].
    inversion D as [|? ? Out Dj]; subst. specialize (IH Dj). cbn [map].
    assert (Cons : forall u us, weight (u :: us) = Z.abs u + weight us) by reflexivity. rewrite !Cons.
    assert (Cell : sum (of_cell j ((k, z) :: rest)) = (if Nat.eqb j k then z else 0) + sum (of_cell j rest)).
    { unfold of_cell. cbn [filter fst]. destruct (Nat.eqb j k); [reflexivity|lia]. }
    rewrite Cell. destruct (in_dec Nat.eq_dec k (j :: js)) as [I|I], (in_dec Nat.eq_dec k js) as [J|J];
      destruct (Nat.eqb_spec j k) as [E|E]; subst; try contradiction; try lia; exfalso; apply I || destruct I;
      simpl; tauto.
Qed.

(** * Sums beyond 64 bits: blocks that fit, their halves of 32 bits added up apart *)

(** [held >> 32] and [held & 0xFFFFFFFF] *)
Definition high (held : Z) : Z := Z.shiftr held 32.
Definition low (held : Z) : Z := Z.land held (2 ^ 32 - 1).

Lemma halves held : high held * 2 ^ 32 + low held = held.
Proof.
  unfold high, low. change (2 ^ 32 - 1) with (Z.ones 32).
  rewrite Z.shiftr_div_pow2, Z.land_ones by discriminate.
  pose proof (Z.div_mod held (2 ^ 32) ltac:(discriminate)). lia.
Qed.

Fixpoint halves64 (blocks : list Z) (h l : Z) : Z * Z :=
  match blocks with [] => (h, l) | held :: rest => halves64 rest (plus64 h (high held)) (plus64 l (low held)) end.

Lemma halves64_are blocks : forall h l k, 0 <= k -> k + Z.of_nat (length blocks) <= 2 ^ 31 ->
  Z.abs h <= k * 2 ^ 31 -> 0 <= l <= k * (2 ^ 32 - 1) -> Forall fits blocks ->
  let found := halves64 blocks h l in
  fst found * 2 ^ 32 + snd found = h * 2 ^ 32 + l + sum blocks /\ fits (fst found) /\ fits (snd found).
Proof.
  induction blocks as [|held rest IH]; intros h l k K N H L F; cbn [halves64].
  - unfold fits, sum. simpl in *. lia.
  - inversion F as [|? ? Held Rest]; subst. cbn [length] in N. rewrite Nat2Z.inj_succ in N.
    pose proof (halves held) as E.
    assert (Low : 0 <= low held < 2 ^ 32).
    { unfold low. change (2 ^ 32 - 1) with (Z.ones 32). rewrite Z.land_ones by discriminate.
      now apply Z.mod_pos_bound. }
    unfold fits in Held. assert (High : Z.abs (high held) <= 2 ^ 31) by lia.
    rewrite !plus64_is by (unfold fits; lia).
    destruct (IH (h + high held) (l + low held) (k + 1) ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) Rest) as [S P].
    split; [|exact P]. rewrite S. change (sum (held :: rest)) with (held + sum rest). lia.
Qed.

(** Up to 2³¹ blocks; an array has as many only beyond 2⁴⁵ entries in blocks of 2¹⁴. *)
Theorem blocks_are_exact blocks : Forall fits blocks -> Z.of_nat (length blocks) <= 2 ^ 31 ->
  let found := halves64 blocks 0 0 in fst found * 2 ^ 32 + snd found = sum blocks.
Proof. intros F N. exact (proj1 (halves64_are blocks 0 0 0 ltac:(lia) N ltac:(lia) ltac:(lia) F)). Qed.

(** A dot product in blocks ([exact._dot]): up to 2¹⁴ products of at most 2⁴⁸ in each. *)
Fixpoint dot64 (so_far : Z) (pairs : list (Z * Z)) : Z :=
  match pairs with [] => so_far | (a, b) :: rest => dot64 (plus64 so_far (times64 a b)) rest end.

Lemma dot64_wraps pairs : forall so_far, dot64 (wrap so_far) pairs = wrap (so_far + dot pairs).
Proof.
  unfold dot, sum. induction pairs as [|[a b] rest IH]; intro so_far; simpl.
  - f_equal. ring.
  - rewrite plus64_wrap. unfold plus64, times64. destruct (wrap_multiple (a * b)) as [k ->].
    rewrite (wrap_same _ (so_far + a * b) k) by ring. rewrite IH. f_equal. ring.
Qed.

Lemma block_fits limit xs : (forall x, In x xs -> Z.abs x <= limit) -> Z.of_nat (length xs) * limit < 2 ^ 63 ->
  fits (sum xs).
Proof. intros L N. pose proof (weight_reach limit xs L). pose proof (sum_within xs). unfold fits. lia. Qed.

Theorem dot_in_blocks_is_exact blocks :
  (forall block, In block blocks -> Z.of_nat (length block) <= 2 ^ 14
    /\ forall a b, In (a, b) block -> Z.abs (a * b) <= 2 ^ 48) ->
  Z.of_nat (length blocks) <= 2 ^ 31 ->
  let found := halves64 (map (dot64 0) blocks) 0 0 in
  fst found * 2 ^ 32 + snd found = dot (concat blocks).
Proof.
  intros B N.
  assert (E : Forall fits (map (dot64 0) blocks) /\ sum (map (dot64 0) blocks) = dot (concat blocks)).
  { clear N. induction blocks as [|block rest IH]; [split; [constructor|reflexivity]|].
    destruct (B block (or_introl eq_refl)) as [M L].
    assert (F : fits (dot block)).
    { apply (block_fits (2 ^ 48)); [|rewrite map_length; lia]. intros x I. apply in_map_iff in I.
      destruct I as ([a b] & <- & I). now apply L. }
    assert (D : dot64 0 block = dot block).
    { change 0 with (wrap 0) at 1. rewrite dot64_wraps. now apply wrap_is. }
    destruct IH as [G S]; [intros other I; apply B; now right|].
    cbn [map concat]. split; [constructor; [now rewrite D|exact G]|].
    unfold dot at 1. rewrite map_app, sum_app. fold (dot block) (dot (concat rest)).
    change (sum (dot64 0 block :: map (dot64 0) rest)) with (dot64 0 block + sum (map (dot64 0) rest)). lia. }
  destruct E as [F S]. rewrite <- S. apply blocks_are_exact; [exact F|]. now rewrite map_length.
Qed.

(** Larger factors are split ([exact.dot]): Σ a·b = 2ʰ·Σ (a >> h)·b + Σ (a & (2ʰ − 1))·b. *)
Theorem split_dot h pairs : 0 <= h ->
  dot pairs = 2 ^ h * dot (map (fun p => (Z.shiftr (fst p) h, snd p)) pairs)
              + dot (map (fun p => (Z.land (fst p) (Z.ones h), snd p)) pairs).
Proof.
  intro H. unfold dot, sum. induction pairs as [|[a b] rest IH]; simpl; [ring|].
  rewrite IH, Z.shiftr_div_pow2, Z.land_ones by exact H.
  pose proof (Z.div_mod a (2 ^ h) (Z.pow_nonzero 2 h ltac:(discriminate) H)) as D.
  rewrite D at 1. ring.
Qed.

(** * The guards of the kernels: the or of absolute values has as many bits as the largest *)

(** Bits of a word that is an absolute value; 64 for −2⁶³, the absolute value of itself. *)
Definition bits (z : Z) : Z := if z <? 0 then 64 else if z =? 0 then 0 else Z.log2 z + 1.

Lemma bits_range z : 0 <= bits z.
Proof. unfold bits. destruct (z <? 0); [lia|]. destruct (z =? 0); [lia|]. pose proof (Z.log2_nonneg z). lia. Qed.

Lemma bits_below z k : fits z -> bits z <= k -> k < 64 -> 0 <= z < 2 ^ k.
Proof.
  unfold bits. intros F B K. destruct (Z.ltb_spec z 0); [lia|]. destruct (Z.eqb_spec z 0) as [->|N].
  - split; [lia|]. apply Z.pow_pos_nonneg; lia.
  - split; [lia|]. apply Z.log2_lt_pow2; lia.
Qed.

Lemma bits_or a b : fits a -> fits b -> fits (Z.lor a b) /\ bits (Z.lor a b) = Z.max (bits a) (bits b).
Proof.
  intros A B.
  assert (Small : forall z, fits z -> 0 <= z -> bits z <= 63).
  { intros z F P. unfold bits. destruct (Z.ltb_spec z 0); [lia|]. destruct (Z.eqb_spec z 0); [lia|].
    enough (Z.log2 z < 63) by lia. apply Z.log2_lt_pow2; unfold fits in F; lia. }
  pose proof (Z.lor_neg a b) as Neg.
  destruct (Z_lt_ge_dec (Z.lor a b) 0) as [N|P].
  - assert (bits (Z.lor a b) = 64) as -> by (unfold bits; now rewrite (proj2 (Z.ltb_lt _ _) N)).
    split.
    + (* Above the 63rd bit, both have their signs. *)
      split; [|unfold fits in *; lia].
      enough (Z.shiftr (Z.lor a b) 63 = -1 \/ 0 <= Z.lor a b) as [E|E]; [|lia|].
      { rewrite Z.shiftr_div_pow2 in E by discriminate.
        pose proof (Z.div_mod (Z.lor a b) (2 ^ 63) ltac:(discriminate)).
        pose proof (Z.mod_pos_bound (Z.lor a b) (2 ^ 63) eq_refl). lia. }
      left. rewrite Z.shiftr_lor, !Z.shiftr_div_pow2 by discriminate. unfold fits in *.
      assert (S : forall z, - 2 ^ 63 <= z < 2 ^ 63 -> z / 2 ^ 63 = if z <? 0 then -1 else 0).
      { intros z Z1. destruct (Z.ltb_spec z 0).
        - symmetry. apply (Z.div_unique z (2 ^ 63) (-1) (z + 2 ^ 63)); lia.
        - apply Z.div_small. lia. }
      rewrite (S a A), (S b B). destruct Neg as [Neg _]. destruct (Neg N) as [X|X];
        rewrite (proj2 (Z.ltb_lt _ _) X); [apply Z.lor_m1_l | apply Z.lor_m1_r].
    + destruct Neg as [Neg _]. destruct (Neg N) as [X|X].
      * assert (bits a = 64) as -> by (unfold bits; now rewrite (proj2 (Z.ltb_lt _ _) X)).
        destruct (Z_lt_ge_dec b 0) as [Y|Y].
        { assert (bits b = 64) as -> by (unfold bits; now rewrite (proj2 (Z.ltb_lt _ _) Y)). reflexivity. }
        pose proof (Small b B ltac:(lia)). lia.
      * assert (bits b = 64) as -> by (unfold bits; now rewrite (proj2 (Z.ltb_lt _ _) X)).
        destruct (Z_lt_ge_dec a 0) as [Y|Y].
        { assert (bits a = 64) as -> by (unfold bits; now rewrite (proj2 (Z.ltb_lt _ _) Y)). reflexivity. }
        pose proof (Small a A ltac:(lia)). lia.
  - assert (0 <= a /\ 0 <= b) as [Pa Pb] by (rewrite <- Z.lor_nonneg; lia).
    pose proof (Z.log2_lor a b Pa Pb) as Log.
    destruct (Z.eq_dec a 0) as [->|Na].
    { rewrite Z.lor_0_l. split; [exact B|]. pose proof (bits_range b). change (bits 0) with 0. lia. }
    destruct (Z.eq_dec b 0) as [->|Nb].
    { rewrite Z.lor_0_r. split; [exact A|]. pose proof (bits_range a). change (bits 0) with 0. lia. }
    assert (Nab : Z.lor a b <> 0) by (intro E; apply Z.lor_eq_0_l in E; lia).
    split.
    + split; [unfold fits in *; lia|]. apply Z.log2_lt_pow2; [lia|]. rewrite Log.
      unfold fits in *. apply Z.max_lub_lt; apply Z.log2_lt_pow2; lia.
    + unfold bits. rewrite !(proj2 (Z.ltb_ge _ _)) by lia. rewrite !(proj2 (Z.eqb_neq _ _)) by assumption.
      rewrite Log. lia.
Qed.

(** x ^ (x >> 63): x itself, or −x − 1 *)
Definition unsigned (x : Z) : Z := Z.lxor x (Z.shiftr x 63).

Lemma unsigned_is x : fits x -> unsigned x = if x <? 0 then - x - 1 else x.
Proof.
  intro F. unfold unsigned, fits in *. rewrite Z.shiftr_div_pow2 by discriminate. destruct (Z.ltb_spec x 0).
  - assert (x / 2 ^ 63 = -1) as -> by (symmetry; apply (Z.div_unique x (2 ^ 63) (-1) (x + 2 ^ 63)); lia).
    rewrite Z.lxor_m1_r. unfold Z.lnot. lia.
  - rewrite Z.div_small by lia. apply Z.lxor_0_r.
Qed.

(** The kernel of [models.arithmetic.distance]: what a block of entries (x, y, w) leaves in its four variables. It
    starts with 0, 1, 0, 0. Without weights, w is 1. *)
Definition power (squared : bool) (d : Z) : Z := if squared then d * d else Z.abs d.
Definition power64 (squared : bool) (d : Z) : Z := if squared then times64 d d else abs64 d.

Record state : Type := State { inputs : Z; weighing : Z; largest : Z; held : Z }.

Fixpoint block64 (squared : bool) (entries : list (Z * Z * Z)) (s : state) : state :=
  match entries with
  | [] => s
  | (x, y, w) :: rest =>
      let d := minus64 x y in
      block64 squared rest
        (State (Z.lor (inputs s) (Z.lor (unsigned x) (unsigned y))) (Z.lor (weighing s) (abs64 w))
               (Z.lor (largest s) (abs64 d)) (plus64 (held s) (times64 w (power64 squared d))))
  end.

Definition allowed (squared : bool) (s : state) : bool :=
  (bits (inputs s) <=? 61) && (bits (weighing s) + (if squared then 2 else 1) * bits (largest s) <=? 48).

(** The whole kernel: high and low parts, or nothing where a block is not allowed. *)
Fixpoint distance64 (squared : bool) (blocks : list (list (Z * Z * Z))) (h l : Z) : option (Z * Z) :=
  match blocks with
  | [] => Some (h, l)
  | block :: rest =>
      let s := block64 squared block (State 0 1 0 0) in
      if allowed squared s then distance64 squared rest (plus64 h (high (held s))) (plus64 l (low (held s)))
      else None
  end.

Definition away (squared : bool) (e : Z * Z * Z) : Z := let '(x, y, w) := e in w * power squared (x - y).

Definition entry_fits (e : Z * Z * Z) : Prop := let '(x, y, w) := e in fits x /\ fits y /\ fits w.

Lemma abs64_fits a : fits (abs64 a).
Proof. apply wrap_fits. Qed.

Lemma unsigned_fits x : fits x -> fits (unsigned x).
Proof. intro F. rewrite unsigned_is by exact F. unfold fits in *. destruct (Z.ltb_spec x 0); lia. Qed.

Lemma unsigned_below x : fits x -> bits (unsigned x) <= 61 -> - 2 ^ 61 <= x < 2 ^ 61.
Proof.
  intros F B. pose proof (bits_below _ 61 (unsigned_fits x F) B eq_refl) as R.
  rewrite unsigned_is in R by exact F. destruct (Z.ltb_spec x 0); lia.
Qed.

Lemma abs64_below a k : fits a -> bits (abs64 a) <= k -> k < 63 -> Z.abs a < 2 ^ k.
Proof.
  intros F B K. pose proof (bits_below _ k (abs64_fits a) B ltac:(lia)) as R.
  destruct (Z.eq_dec a (- 2 ^ 63)) as [->|N].
  - change (abs64 (- 2 ^ 63)) with (- 2 ^ 63) in R. lia.
  - unfold abs64 in R. rewrite wrap_is in R by (unfold fits in *; lia). lia.
Qed.

(** The flags at the end cover those of every entry. *)
Lemma block64_flags squared entries : forall s, Forall entry_fits entries ->
  fits (inputs s) -> fits (weighing s) -> fits (largest s) ->
  let t := block64 squared entries s in
  bits (inputs s) <= bits (inputs t) /\ bits (weighing s) <= bits (weighing t)
  /\ bits (largest s) <= bits (largest t)
  /\ forall x y w, In (x, y, w) entries ->
       bits (unsigned x) <= bits (inputs t) /\ bits (unsigned y) <= bits (inputs t)
       /\ bits (abs64 w) <= bits (weighing t) /\ bits (abs64 (minus64 x y)) <= bits (largest t).
Proof.
  induction entries as [|[[x y] w] rest IH]; intros s F I W L; cbn [block64].
  - cbv zeta. split; [lia|]. split; [lia|]. split; [lia|]. intros ? ? ? [].
  - inversion F as [|? ? E Rest]; subst. destruct E as (X & Y & V).
    destruct (bits_or (unsigned x) (unsigned y) (unsigned_fits x X) (unsigned_fits y Y)) as [Fxy Bxy].
    destruct (bits_or (inputs s) _ I Fxy) as [Fi Bi].
    destruct (bits_or (weighing s) (abs64 w) W (abs64_fits w)) as [Fw Bw].
    destruct (bits_or (largest s) (abs64 (minus64 x y)) L (abs64_fits _)) as [Fl Bl].
    set (next := State _ _ _ _).
    destruct (IH next Rest Fi Fw Fl) as (Hi & Hw & Hl & All).
    subst next. cbn [inputs weighing largest] in *. cbv zeta.
    split; [lia|]. split; [lia|]. split; [lia|].
    intros x' y' w' [E|In']; [injection E as <- <- <-; lia | now apply All].
Qed.

Lemma block64_held squared entries : forall s, Forall entry_fits entries -> fits (held s) ->
  held (block64 squared entries s)
  = wrap (held s + sum (map (fun e => let '(x, y, w) := e in w * power64 squared (minus64 x y)) entries)).
Proof.
  induction entries as [|[[x y] w] rest IH]; intros s F H; cbn [block64].
  - unfold sum. simpl. rewrite Z.add_0_r. symmetry. now apply wrap_is.
  - inversion F as [|? ? _ Rest]; subst. rewrite IH; [|exact Rest|apply wrap_fits]. cbn [held].
    cbn [map]. unfold sum. cbn [fold_right]. set (p := w * power64 squared (minus64 x y)). set (q := fold_right Z.add 0 _).
    unfold plus64, times64. fold p.
    destruct (wrap_multiple p) as [k ->]. destruct (wrap_multiple (held s + (p + k * 2 ^ 64))) as [m ->].
    apply (wrap_same _ _ (k + m)). ring.
Qed.

Lemma power_is (squared : bool) d k : Z.abs d < 2 ^ k -> 0 <= k -> (if squared then 2 else 1) * k <= 48 ->
  power64 squared d = power squared d /\ 0 <= power squared d <= 2 ^ ((if squared then 2 else 1) * k).
Proof.
  intros D K L. unfold power64, power, times64, abs64. destruct squared.
  - assert (P : 2 ^ (2 * k) = 2 ^ k * 2 ^ k) by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
    assert (S : 2 ^ (2 * k) <= 2 ^ 48) by (apply Z.pow_le_mono_r; lia). rewrite P in *.
    assert (0 <= d * d <= 2 ^ k * 2 ^ k) by nia. split; [|assumption].
    apply wrap_is. unfold fits. lia.
  - rewrite Z.mul_1_l in *. assert (S : 2 ^ k <= 2 ^ 48) by (apply Z.pow_le_mono_r; lia). split; [|lia].
    apply wrap_is. unfold fits. lia.
Qed.

Lemma block64_is_exact squared entries : Forall entry_fits entries -> Z.of_nat (length entries) <= 2 ^ 14 ->
  allowed squared (block64 squared entries (State 0 1 0 0)) = true ->
  held (block64 squared entries (State 0 1 0 0)) = sum (map (away squared) entries)
  /\ fits (sum (map (away squared) entries)).
Proof.
  intros F N A. unfold allowed in A. apply andb_true_iff in A. destruct A as [I P].
  apply Z.leb_le in I, P.
  destruct (block64_flags squared entries (State 0 1 0 0) F) as (_ & _ & _ & All);
    [cbn; unfold fits; lia ..|].
  rewrite block64_held by (assumption || (cbn; unfold fits; lia)). cbn [held] in *.
  set (t := block64 squared entries (State 0 1 0 0)) in *.
  pose proof (bits_range (weighing t)) as Bw. pose proof (bits_range (largest t)) as Bl.
  assert (Each : forall e, In e entries -> (let '(x, y, w) := e in w * power64 squared (minus64 x y)) = away squared e
                                           /\ Z.abs (away squared e) <= 2 ^ 48).
  { intros [[x y] w] In'. destruct (All x y w In') as (Bx & By & Bv & Bd).
    rewrite Forall_forall in F. destruct (F _ In') as (X & Y & V).
    pose proof (unsigned_below x X ltac:(lia)). pose proof (unsigned_below y Y ltac:(lia)).
    assert (D : minus64 x y = x - y) by (apply minus64_is; unfold fits; lia). rewrite D in *.
    assert (L48 : bits (largest t) <= 48) by (destruct squared; lia).
    pose proof (abs64_below (x - y) (bits (largest t)) ltac:(unfold fits; lia) Bd ltac:(lia)) as Small.
    pose proof (abs64_below w (bits (weighing t)) V Bv ltac:(destruct squared; lia)) as Light.
    destruct (power_is squared (x - y) (bits (largest t)) Small Bl ltac:(destruct squared; lia)) as [E R].
    unfold away. rewrite E. split; [reflexivity|].
    rewrite Z.abs_mul, (Z.abs_eq (power squared (x - y))) by lia.
    apply Z.le_trans with (2 ^ bits (weighing t) * 2 ^ ((if squared then 2 else 1) * bits (largest t))).
    - apply Z.mul_le_mono_nonneg; lia.
    - rewrite <- Z.pow_add_r by (destruct squared; lia). apply Z.pow_le_mono_r; lia. }
  assert (E : map (fun e => let '(x, y, w) := e in w * power64 squared (minus64 x y)) entries
              = map (away squared) entries).
  { apply map_ext_in. intros e In'. now apply Each. }
  rewrite E, Z.add_0_l.
  assert (Fits : fits (sum (map (away squared) entries))).
  { apply (block_fits (2 ^ 48)); [|rewrite map_length; lia]. intros z In'. apply in_map_iff in In'.
    destruct In' as (e & <- & In'). now apply Each. }
  split; [now apply wrap_is|exact Fits].
Qed.

Lemma distance64_halves squared blocks :
  (forall block, In block blocks -> Forall entry_fits block /\ Z.of_nat (length block) <= 2 ^ 14) ->
  forall h l found, distance64 squared blocks h l = Some found ->
  let sums := map (fun b => sum (map (away squared) b)) blocks in
  Forall fits sums /\ found = halves64 sums h l.
Proof.
  induction blocks as [|block rest IH]; intros B h l found D; cbn [distance64] in D.
  - injection D as <-. split; [constructor|reflexivity].
  - destruct (allowed squared _) eqn:A; [|discriminate].
    destruct (B block (or_introl eq_refl)) as [F M].
    destruct (block64_is_exact squared block F M A) as [H Fits].
    rewrite H in D. destruct (IH (fun b I => B b (or_intror I)) _ _ _ D) as [Fs E].
    cbn [map halves64]. split; [constructor; assumption|exact E].
Qed.

(** If the kernel gives two parts, they are the distance Σ w·|x − y| or Σ w·(x − y)², whatever the entries. *)
Theorem distance_is_exact squared blocks parts :
  (forall block, In block blocks -> Forall entry_fits block /\ Z.of_nat (length block) <= 2 ^ 14) ->
  Z.of_nat (length blocks) <= 2 ^ 31 ->
  distance64 squared blocks 0 0 = Some parts ->
  fst parts * 2 ^ 32 + snd parts = sum (map (away squared) (concat blocks)).
Proof.
  intros B N D. destruct (distance64_halves squared blocks B 0 0 parts D) as [F ->].
  rewrite blocks_are_exact; [|exact F|now rewrite map_length].
  clear. induction blocks as [|block rest IH]; [reflexivity|].
  cbn [map concat]. rewrite map_app, sum_app, <- IH. reflexivity.
Qed.

Lemma or_above u v : 0 <= u -> 0 <= v -> u <= Z.lor u v.
Proof.
  intros U V. assert (E : Z.lor u v = u + Z.ldiff v u).
  { assert (N : Z.land u (Z.ldiff v u) = 0) by (apply Z.bits_inj'; intros n _;
      rewrite Z.land_spec, Z.ldiff_spec, Z.bits_0; destruct (Z.testbit u n), (Z.testbit v n); reflexivity).
    rewrite (Z.add_nocarry_lxor _ _ N), (Z.lxor_lor _ _ N). apply Z.bits_inj'. intros n _.
    rewrite !Z.lor_spec, Z.ldiff_spec. destruct (Z.testbit u n), (Z.testbit v n); reflexivity. }
  pose proof (proj2 (Z.ldiff_nonneg v u)). lia.
Qed.

(** [models.segments.adds_up]: the or of non-negative entries, times their number, bounds the sum. *)
Theorem or_bounds_sum xs m t : Forall fits xs -> 0 <= fold_right Z.lor 0 xs ->
  Z.of_nat (length xs) * fold_right Z.lor 0 xs < 2 ^ 63 ->
  Permutation (terms t) (repeat 0 m ++ xs) -> sum64 t = sum xs /\ Forall (fun x => 0 <= x) xs.
Proof.
  intros F P N T.
  assert (All : forall x, In x xs -> 0 <= x <= fold_right Z.lor 0 xs).
  { clear N T F. induction xs as [|a xs IH]; [contradiction|]. cbn [fold_right] in *.
    apply Z.lor_nonneg in P. destruct P as [Pa P].
    pose proof (or_above a _ Pa P) as Ua. pose proof (or_above _ a P Pa) as Uo. rewrite Z.lor_comm in Uo.
    intros x [<-|I]; [lia|]. specialize (IH P x I). lia. }
  split; [|apply Forall_forall; intros x I; now apply All].
  apply (sum_is_exact xs m t T). pose proof (weight_reach (fold_right Z.lor 0 xs) xs) as W.
  specialize (W ltac:(intros x I; specialize (All x I); lia)). lia.
Qed.

(** * Without the guards, words are wrong *)

Example one_too_many : plus64 (2 ^ 63 - 1) 1 = - 2 ^ 63.
Proof. reflexivity. Qed.

Example four_children : gathered64 (fun _ => 0) (repeat (1%nat, 2 ^ 62) 4) 1%nat = 0.
Proof. reflexivity. Qed.

Example least_has_no_absolute_value : abs64 (- 2 ^ 63) = - 2 ^ 63.
Proof. reflexivity. Qed.

(** The guard refuses squares of 2³², and allows those of 2³¹. *)
Example squares_refused : guarded (fun _ => 2 ^ 32) (Times (Input 0) (Input 0)) = false.
Proof. reflexivity. Qed.

Example squares_allowed : guarded (fun _ => 2 ^ 31) (Times (Input 0) (Input 0)) = true.
Proof. reflexivity. Qed.

(** The kernel refuses inputs whose difference wraps to 0 or to a negative number, and adds up others. *)
Example kernel_refuses : map (fun x => distance64 true [[(x, - 2 ^ 63, 1)]] 0 0) [2 ^ 63 - 1; 0] = [None; None].
Proof. reflexivity. Qed.

Example kernel_adds : distance64 true [[(2 ^ 23, 1, 2); (5, 7, 3)]] 0 0 = Some (32767, 4261412878).
Proof. reflexivity. Qed.
