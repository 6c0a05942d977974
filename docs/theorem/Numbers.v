(** Rational numbers that stay short: sums and products of [Q], reduced where they grow. *)

From Coq Require Import QArith Qround Qabs ZArith Lia Lqa Morphisms.
Open Scope Q_scope.

Definition reduced (a : Q) : Q := if Pos.eqb (Qden a) 1 then a else Qred a.

Definition add (a b : Q) : Q :=
  if Pos.eqb (Qden a) (Qden b) then Qmake (Qnum a + Qnum b) (Qden a) else Qred (a + b).

Definition mul (a b : Q) : Q := reduced (a * b).

Definition sub (a b : Q) : Q := add a (- b).

Lemma reduced_is a : reduced a == a.
Proof. unfold reduced. destruct (Pos.eqb _ _); [reflexivity | apply Qred_correct]. Qed.

Lemma add_is a b : add a b == a + b.
Proof.
  unfold add. destruct (Pos.eqb_spec (Qden a) (Qden b)) as [E|_]; [|apply Qred_correct].
  destruct a as [n d], b as [m e]; simpl in *; subst e.
  unfold Qeq, Qplus; simpl. rewrite Pos2Z.inj_mul. ring.
Qed.

Lemma mul_is a b : mul a b == a * b.
Proof. apply reduced_is. Qed.

Lemma sub_is a b : sub a b == a - b.
Proof. unfold sub. rewrite add_is. reflexivity. Qed.

(** Equal numbers have equal sums and products, whatever their fractions. *)
Global Instance add_same : Proper (Qeq ==> Qeq ==> Qeq) add.
Proof. intros a b E c d F. now rewrite !add_is, E, F. Qed.

Global Instance mul_same : Proper (Qeq ==> Qeq ==> Qeq) mul.
Proof. intros a b E c d F. now rewrite !mul_is, E, F. Qed.

Global Instance sub_same : Proper (Qeq ==> Qeq ==> Qeq) sub.
Proof. intros a b E c d F. now rewrite !sub_is, E, F. Qed.

Definition at_most (a b : Q) : bool := Qle_bool a b.

Lemma at_most_true a b : at_most a b = true <-> a <= b.
Proof. apply Qle_bool_iff. Qed.

Lemma at_most_false a b : at_most a b = false -> b < a.
Proof.
  intro F. apply Qnot_le_lt. intro L. apply Qle_bool_iff in L. unfold at_most in F. congruence.
Qed.

Ltac compare a b :=
  let E := fresh "E" in
  destruct (at_most a b) eqn:E; [apply at_most_true in E | apply at_most_false in E].

(** Whole numbers among them. *)

Definition is_whole (v : Q) : Prop := exists z : Z, v == inject_Z z.

Definition whole_number (v : Q) : bool := Qeq_bool v (inject_Z (Qfloor v)).

Lemma whole_number_true v : whole_number v = true -> is_whole v.
Proof. intro E. exists (Qfloor v). now apply Qeq_bool_iff. Qed.

Lemma whole_number_is v : is_whole v -> v == inject_Z (Qfloor v).
Proof. intros [z E]. rewrite E at 1. rewrite E, Qfloor_Z. reflexivity. Qed.

Lemma whole_add a b : is_whole a -> is_whole b -> is_whole (a + b).
Proof. intros [x X] [y Y]. exists (x + y)%Z. rewrite X, Y, inject_Z_plus. reflexivity. Qed.

Lemma whole_mul a b : is_whole a -> is_whole b -> is_whole (a * b).
Proof. intros [x X] [y Y]. exists (x * y)%Z. rewrite X, Y, inject_Z_mult. reflexivity. Qed.

Lemma whole_opp a : is_whole a -> is_whole (- a).
Proof. intros [x X]. exists (- x)%Z. rewrite X, inject_Z_opp. reflexivity. Qed.

Lemma whole_abs a : is_whole a -> is_whole (Qabs a).
Proof. intro W. apply (Qabs_case a is_whole); intros _; [|apply whole_opp]; exact W. Qed.

Lemma inject_le a b : inject_Z a <= inject_Z b <-> (a <= b)%Z.
Proof. now rewrite Zle_Qle. Qed.

Lemma ceiling_le a z : a <= inject_Z z -> (Qceiling a <= z)%Z.
Proof. intro L. rewrite <- (Qceiling_Z z). now apply Qceiling_resp_le. Qed.

Lemma floor_le z a : inject_Z z <= a -> (z <= Qfloor a)%Z.
Proof. intro L. rewrite <- (Qfloor_Z z). now apply Qfloor_resp_le. Qed.
