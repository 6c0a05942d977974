(** The operators of [models.programs.operators]: A v and Aᵀ y in a few array operations, of one and the same matrix. *)

From Coq Require Import QArith ZArith List Lia Lqa FMapPositive.
From Lagrangian Require Import Numbers Programs Bound Certificates.
Import ListNotations.
Open Scope Q_scope.

(** Entries: row, column, number. *)
Definition matrix : Type := list (positive * positive * Q).

(** A v: entry by entry, into its row. *)
Fixpoint apply (m : matrix) (v : positive -> Q) (i : positive) : Q :=
  match m with [] => 0 | (r, c, a) :: rest => (if Pos.eqb r i then a * v c else 0) + apply rest v i end.

Definition transposed : matrix -> matrix := map (fun e => (snd (fst e), fst (fst e), snd e)).

Definition inside (height width : nat) : matrix -> Prop :=
  Forall (fun e => Zpos (fst (fst e)) <= Z.of_nat height /\ Zpos (snd (fst e)) <= Z.of_nat width)%Z.

(** One row more. *)
Lemma over_entry {A : Type} (f g : positive -> Q) r q (rs : list A) : (Zpos r <= Z.of_nat (length rs))%Z ->
  over 1 rs (fun i _ => f i * ((if Pos.eqb r i then q else 0) + g i)) == f r * q + over 1 rs (fun i _ => f i * g i).
Proof.
  intro R. pose proof (proj2 (over_one r (f r * q) rs 1) ltac:(lia)) as E. rewrite <- E.
  setoid_replace (over 1 rs (fun i _ => f i * g i)) with (1 * over 1 rs (fun i _ => f i * g i)) by ring.
  rewrite <- over_add. apply over_same. intros i x. cbv beta. destruct (Pos.eqb_spec r i) as [<-|]; ring.
Qed.

(** Whatever the entries: ⟨y, A v⟩ = ⟨Aᵀ y, v⟩. *)
Theorem operators_are_adjoint {A B : Type} (m : matrix) (rs : list A) (xs : list B) y v :
  inside (length rs) (length xs) m ->
  over 1 rs (fun i _ => y i * apply m v i) == over 1 xs (fun j _ => v j * apply (transposed m) y j).
Proof.
  intro I. induction I as [|[[r c] a] m [R C] _ IH]; cbn [apply transposed map fst snd] in *.
  - transitivity 0; [|symmetry]; rewrite (over_same _ (fun _ _ => 0)) by (intros; ring); apply over_zero.
  - fold (transposed m). rewrite !over_entry, IH by assumption. ring.
Qed.

(** So the checker charges variables by the operators of their rows. *)
Corollary operators_charge p m ys : inside (length (rows p)) (length (variables p)) m ->
  each 1 (rows p) (fun i r => forall v, activity (entries r) v == apply m v i) ->
  adjoint p ys (apply (transposed m) ys).
Proof.
  intros I E v. rewrite (over_same _ (fun j _ => v j * apply (transposed m) ys j)) by (intros; ring).
  rewrite <- (operators_are_adjoint m (rows p) (variables p) ys v I). clear I. revert E.
  generalize 1%positive as k, (rows p) as rs. intros k rs. revert k.
  induction rs as [|r rs IH]; intro k; cbn [over each]; [reflexivity|]. intros [E Es]. now rewrite E, (IH _ Es).
Qed.

(** Rows without another operator are charged entry by entry. *)
Fixpoint listed {A : Type} (k : positive) (rs : list A) (ys : positive -> Q) : list Q :=
  match rs with [] => [] | _ :: rest => ys k :: listed (Pos.succ k) rest ys end.

Theorem entries_charge p ys : in_range p = true ->
  adjoint p ys (charge_of (charge_rows (rows p) (listed 1 (rows p) ys) (PositiveMap.empty Q))).
Proof.
  intros R v. set (m := charge_rows _ _ _).
  assert (X : forall xs k, charged k xs m v == over k xs (fun j _ => charge_of m j * v j))
    by (induction xs as [|x xs IH]; intro k; cbn [charged over]; [|rewrite IH]; reflexivity).
  assert (Y : forall rs k, priced rs (listed k rs ys) v == over k rs (fun i r => ys i * activity (entries r) v))
    by (induction rs as [|r rs IH]; intro k; cbn [priced listed over]; [|rewrite IH]; reflexivity).
  rewrite <- X, <- Y. unfold m. rewrite charged_rows, charged_nothing by now apply in_range_is. ring.
Qed.

Lemma apply_app a b v i : apply (a ++ b) v i == apply a v i + apply b v i.
Proof. induction a as [|[[r c] x] a IH]; cbn [apply app]; [ring|]. rewrite IH. ring. Qed.

(** Row k has the value at f(k), times s: a gather, [v[f]]. Transposed, what is at k is put into f(k). *)
Definition picks (ks : list positive) (f : positive -> positive) (s : Q) : matrix := map (fun k => (k, f k, s)) ks.

Definition gathered (ks : list positive) (f : positive -> positive) (y : positive -> Q) (j : positive) : Q :=
  fold_right (fun k sum => y k + sum) 0 (filter (fun k => Pos.eqb (f k) j) ks).

Lemma transposed_picks ks f s y j : apply (transposed (picks ks f s)) y j == s * gathered ks f y j.
Proof.
  unfold gathered, picks, transposed. induction ks as [|k ks IH]; cbn [map apply filter fold_right fst snd]; [ring|].
  rewrite IH. destruct (Pos.eqb _ _); cbn [fold_right]; ring.
Qed.

Lemma apply_picks ks f s v i : NoDup ks ->
  (In i ks -> apply (picks ks f s) v i == s * v (f i)) /\ (~ In i ks -> apply (picks ks f s) v i == 0).
Proof.
  unfold picks. intro N. induction N as [|k ks F _ [At Out]]; cbn [map apply In]; [now split|].
  destruct (Pos.eqb_spec k i) as [<-|E]; (split; intro I).
  - rewrite Out by exact F. ring.
  - tauto.
  - rewrite At by tauto. ring.
  - rewrite Out by tauto. ring.
Qed.

(** Steps, and Rises: row i has v[after i] − v[before i]. *)
Theorem steps_are ks after before y v :
  let m := picks ks after 1 ++ picks ks before (- (1)) in
  (NoDup ks -> forall i, In i ks -> apply m v i == v (after i) - v (before i))
  /\ forall j, apply (transposed m) y j == gathered ks after y j - gathered ks before y j.
Proof.
  intro m. unfold m, transposed. split; [intros N i I | intro j]; rewrite ?map_app, apply_app.
  - rewrite !(proj1 (apply_picks _ _ _ _ _ N) I). ring.
  - fold transposed. rewrite !transposed_picks. ring.
Qed.

Lemma transposed_twice m : transposed (transposed m) = m.
Proof. unfold transposed. rewrite map_map, <- map_id. apply map_ext. now intros [[r c] a]. Qed.

(** Sums: variable j is in the sum of row home(j), s = 1; of a RootTotal, some variables only. Each has one variable for
    each row, s = 1 or −1. A Spread is the transpose of sums, or that with −1. *)
Theorem sums_are js home s y v :
  let m := transposed (picks js home s) in
  (forall i, apply m v i == s * gathered js home v i)
  /\ (NoDup js -> forall j, (In j js -> apply (transposed m) y j == s * y (home j))
                           /\ (~ In j js -> apply (transposed m) y j == 0)).
Proof.
  intro m. unfold m. rewrite transposed_twice. split; [intro i; apply transposed_picks | intros N j; now apply apply_picks].
Qed.

(** Children: row i has the node less its children; home(j) is the row of j's parent. The root is not among the js. *)
Theorem children_are ks node js home y v :
  let m := picks ks node 1 ++ transposed (picks js home (- (1))) in
  (NoDup ks -> forall i, In i ks -> apply m v i == v (node i) - gathered js home v i)
  /\ (NoDup js -> forall j, (In j js -> apply (transposed m) y j == gathered ks node y j - y (home j))
                           /\ (~ In j js -> apply (transposed m) y j == gathered ks node y j)).
Proof.
  intro m. unfold m, transposed. split; [intros N i I | intros N j]; rewrite ?map_app, ?apply_app; fold transposed.
  - rewrite (proj1 (apply_picks _ _ _ _ _ N) I), transposed_picks. ring.
  - destruct (apply_picks js home (- (1)) y j N) as [At Out].
    split; intro J; rewrite transposed_twice, transposed_picks, ?At, ?Out by exact J; ring.
Qed.

(** Incidence: what leaves a node less what enters it. *)
Theorem incidence_is arcs tail head y v :
  let m := transposed (picks arcs tail 1 ++ picks arcs head (- (1))) in
  (forall i, apply m v i == gathered arcs tail v i - gathered arcs head v i)
  /\ (NoDup arcs -> forall j, In j arcs -> apply (transposed m) y j == y (tail j) - y (head j)).
Proof. destruct (steps_are arcs tail head v y) as [T A]. intro m. unfold m. rewrite transposed_twice. now split. Qed.

(** The premises can be met: two whole counts of sum 4, nearest to 5 and 3, with −4 as the price of a unit. *)
Example two_counts :
  let count c := Var (Some 0) (Some 4) true [Square 1 c] in
  let p := Make [count 5; count 3] [Row (Some 4) (Some 4) [(1%positive, 1); (2%positive, 1)]] in
  optimal p (fun k => if Pos.eqb k 1 then 3 else 1).
Proof.
  intros count p. pose (m := transposed (picks [1; 2]%positive (fun _ => 1%positive) 1)).
  apply (checker_is_right p (fun _ => - (4)) (apply (transposed m) (fun _ => - (4)))).
  - apply operators_charge; [repeat constructor; simpl; lia|]. split; [|exact I]. intro v. unfold m. simpl. ring.
  - repeat split; try reflexivity; repeat constructor; simpl; try discriminate; try reflexivity;
      intros _; [exists 3%Z | exists 1%Z]; reflexivity.
  - split; [|exact I]. split; [discriminate | intros _; exists 4; split; reflexivity].
  - repeat split; try discriminate; left; vm_compute; discriminate.
Qed.
