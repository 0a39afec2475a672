(* Optimality trees: a certificate that no schedule is better.

   A tree splits the windows in which jobs may start, and carries capacity prices at its leaves. If check accepts a tree for
   a target, no feasible schedule without preemption has a smaller sum of completion times (tree_certificate_sound). *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation Prices.

(* Leaf v den: prices v t / den. Split j s: job j starts by s, or after s. *)
Inductive cert :=
| Leaf (v : list nat) (den : nat)
| Split (j s : nat) (left right : cert).

Section Tree.
Variables (n G target : nat) (r g p : nat -> nat).

Definition price (v : list nat) (t : nat) : nat := nth t v 0.
Definition upd {A} (f : nat -> A) (j : nat) (a : A) : nat -> A := fun i => if i =? j then a else f i.
Definition below (s : nat) (hi : option nat) : bool :=
  match hi with Some h => s <=? h | None => true end.

(* How far past lo the starts of a window have to be looked at. *)
Definition reach (T lo : nat) (hi : option nat) : nat :=
  match hi with Some h => Nat.min (h - lo) (T - lo) | None => T - lo end.

Definition leaf_sum (v : list nat) (den : nat) (lo : nat -> nat) (hi : nat -> option nat) : nat :=
  sum (fun j => min_from (start_cost den (g j) (p j) (price v)) (lo j)
                  (reach (length v) (lo j) (hi j))) n.

Fixpoint any (f : nat -> bool) (m : nat) : bool :=
  match m with 0 => false | S m' => f m' || any f m' end.

Fixpoint check (c : cert) (lo : nat -> nat) (hi : nat -> option nat) : bool :=
  match c with
  | Leaf v den =>
      any (fun j => negb (below (lo j) (hi j))) n ||
      ((0 <? den) &&
       (den * target + G * sum (price v) (length v) <? leaf_sum v den lo hi + den))
  | Split j s a b =>
      check a lo (upd hi j (Some (match hi j with Some h => Nat.min h s | None => s end))) &&
      check b (upd lo j (Nat.max (lo j) (S s))) hi
  end.

Variable st : nat -> nat.
Hypothesis rel : forall j, j < n -> r j <= st j.
Hypothesis cap : forall t, sum (fun j => if running st p t j then g j else 0) n <= G.

Definition inside (lo : nat -> nat) (hi : nat -> option nat) : Prop :=
  forall j, j < n -> lo j <= st j /\ below (st j) (hi j) = true.

Lemma any_true f m : any f m = true -> exists j, j < m /\ f j = true.
Proof.
  induction m; simpl; [discriminate|]. intros H. apply orb_prop in H. destruct H as [H|H].
  - exists m. auto.
  - destruct (IHm H) as [j [A B]]. exists j. auto.
Qed.

Lemma leaf_sound v den lo hi :
  inside lo hi ->
  leaf_sum v den lo hi <= den * sum (fun j => st j + p j) n + G * sum (price v) (length v).
Proof.
  intros I.
  assert (Z : forall t, length v <= t -> price v t = 0) by (intros; apply nth_overflow; auto).
  etransitivity; [|apply (price_schedule n G (length v) den r g p (price v) st Z rel cap)].
  apply sum_le. intros j Hj. destruct (I j Hj) as [A B].
  destruct (Nat.le_gt_cases (st j - lo j) (reach (length v) (lo j) (hi j))) as [L|L].
  - replace (st j) with (lo j + (st j - lo j)) by lia. apply min_from_le; auto.
  - assert (R : reach (length v) (lo j) (hi j) = length v - lo j).
    { unfold reach, below in *. destruct (hi j); [apply Nat.leb_le in B; lia|auto]. }
    rewrite R. apply start_cost_min; auto.
Qed.

Theorem check_sound c lo hi :
  check c lo hi = true -> inside lo hi -> target <= sum (fun j => st j + p j) n.
Proof.
  revert lo hi. induction c as [v den|j s a IHa b IHb]; intros lo hi H I; simpl in H.
  - apply orb_prop in H. destruct H as [H|H].
    + apply any_true in H. destruct H as [j [Hj E]]. destruct (I j Hj) as [A B].
      exfalso. unfold below in *. destruct (hi j); [|discriminate].
      apply negb_true_iff, Nat.leb_gt in E. apply Nat.leb_le in B. lia.
    + apply andb_prop in H. destruct H as [D H]. apply Nat.ltb_lt in D, H.
      pose proof (leaf_sound v den lo hi I).
      destruct (Nat.le_gt_cases target (sum (fun j => st j + p j) n)) as [L|L]; auto.
      exfalso. nia.
  - apply andb_prop in H. destruct H as [Ha Hb].
    destruct (Nat.le_gt_cases (st j) s) as [L|L].
    + apply (IHa _ _ Ha). intros i Hi. destruct (I i Hi) as [A B]. split; auto.
      unfold upd. destruct (Nat.eqb_spec i j) as [->|]; auto.
      unfold below in *. destruct (hi j); apply Nat.leb_le; [apply Nat.leb_le in B|]; lia.
    + apply (IHb _ _ Hb). intros i Hi. destruct (I i Hi) as [A B]. split; auto.
      unfold upd. destruct (Nat.eqb_spec i j) as [->|]; auto. lia.
Qed.
End Tree.

Definition certified (n G target : nat) (r g p : nat -> nat) (c : cert) : bool :=
  check n G target g p c r (fun _ => None).

Theorem tree_certificate_sound n G target r g p c :
  certified n G target r g p c = true ->
  forall st : nat -> nat,
    (forall j, j < n -> r j <= st j) ->
    (forall t, sum (fun j => if running st p t j then g j else 0) n <= G) ->
    target <= sum (fun j => st j + p j) n.
Proof.
  intros H st R A. eapply check_sound; eauto. intros j Hj. split; auto.
Qed.
(* A certificate checked inside Coq: two 2-GPU jobs and a 1-GPU job on 2 GPUs. *)
Example tree_example :
  forall st : nat -> nat, (forall j, j < 3 -> 0 <= st j) ->
  (forall t, sum (fun j => if running st (fun j => nth j [1; 2; 3] 0) t j
                           then nth j [2; 2; 1] 0 else 0) 3 <= 2) ->
  10 <= sum (fun j => st j + nth j [1; 2; 3] 0) 3.
Proof.
  apply (tree_certificate_sound 3 2 10 (fun _ => 0) (fun j => nth j [2; 2; 1] 0)
           (fun j => nth j [1; 2; 3] 0) (Split 1 2 (Leaf [18; 12; 12; 6] 12) (Leaf [6] 12))).
  vm_compute. reflexivity.
Qed.
