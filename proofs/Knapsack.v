(* The most that jobs which fit side by side can pay at once.

   Each job may hold one of its items, of a width and a value; those that are held must fit within a room. fill works out the
   most for every room up to the one given, item by item (knapsack_sound). It may take several items of one job, which makes
   it larger, never smaller. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite.

(* Entry by entry the larger one, as long as the first list. *)
Fixpoint larger (a b : list nat) : list nat :=
  match a, b with
  | x :: a', y :: b' => Nat.max x y :: larger a' b'
  | _, _ => a
  end.

(* best i is the most for room i; now there is one item more. *)
Definition add_item (best : list nat) (item : nat * nat) : list nat :=
  larger best (repeat 0 (fst item) ++ map (fun value => snd item + value) best).

Fixpoint fill (items : nat -> list (nat * nat)) (n room : nat) : list nat :=
  match n with
  | 0 => repeat 0 (S room)
  | S k => fold_left add_item (items k) (fill items k room)
  end.

Definition most (items : nat -> list (nat * nat)) (n room : nat) : nat := nth room (fill items n room) 0.

Lemma larger_length a b : length (larger a b) = length a.
Proof. revert b. induction a; destruct b; simpl; auto. Qed.

Lemma nth_larger a b i : i < length a -> nth i (larger a b) 0 = Nat.max (nth i a 0) (nth i b 0).
Proof.
  revert b i. induction a; intros b i H; simpl in H; [lia|].
  destruct b, i; simpl; try lia. apply IHa. lia.
Qed.

Lemma add_item_length best item : length (add_item best item) = length best.
Proof. apply larger_length. Qed.

Lemma add_item_keeps best item i : i < length best -> nth i best 0 <= nth i (add_item best item) 0.
Proof. intros H. unfold add_item. rewrite nth_larger by auto. lia. Qed.

Lemma add_item_takes best w v i : w <= i < length best -> nth (i - w) best 0 + v <= nth i (add_item best (w, v)) 0.
Proof.
  intros H. unfold add_item. cbn [fst snd]. rewrite nth_larger by lia.
  rewrite app_nth2; rewrite repeat_length; [|lia].
  rewrite (nth_indep (map (fun value => v + value) best) 0 (v + 0)) by (rewrite map_length; lia).
  rewrite (map_nth (fun value => v + value)). lia.
Qed.

Lemma add_items_length items best : length (fold_left add_item items best) = length best.
Proof. revert best. induction items; intros; simpl; auto. rewrite IHitems. apply add_item_length. Qed.

Lemma add_items_keep items best i : i < length best -> nth i best 0 <= nth i (fold_left add_item items best) 0.
Proof.
  revert best. induction items; intros best H; simpl; auto.
  etransitivity; [apply (add_item_keeps best a i H)|]. apply IHitems. rewrite add_item_length. auto.
Qed.

Lemma add_items_take items best w v i :
  In (w, v) items -> w <= i < length best -> nth (i - w) best 0 + v <= nth i (fold_left add_item items best) 0.
Proof.
  revert best. induction items as [|item items IH]; intros best E H; [contradiction|]. destruct E as [E|E]; simpl.
  - subst item. etransitivity; [apply add_item_takes; auto|]. apply add_items_keep. rewrite add_item_length. lia.
  - etransitivity; [|apply IH; [auto|rewrite add_item_length; lia]].
    apply Nat.add_le_mono_r, add_item_keeps. lia.
Qed.

Lemma fill_length items n room : length (fill items n room) = S room.
Proof. induction n; cbn [fill]; [apply repeat_length|]. rewrite add_items_length. auto. Qed.

Theorem knapsack_sound (items : nat -> list (nat * nat)) n room (held : nat -> bool) (w v : nat -> nat) :
  (forall j, j < n -> held j = true -> In (w j, v j) (items j)) ->
  forall i, i <= room -> sum (fun j => if held j then w j else 0) n <= i ->
  sum (fun j => if held j then v j else 0) n <= nth i (fill items n room) 0.
Proof.
  induction n; intros I i Hi H; cbn [sum] in *; [lia|]. cbn [fill].
  specialize (IHn ltac:(intros; apply I; auto)).
  destruct (held n) eqn:E.
  - etransitivity; [|apply (add_items_take (items n) _ (w n) (v n) i)]; auto.
    + apply Nat.add_le_mono_r, IHn; lia.
    + rewrite fill_length. lia.
  - rewrite Nat.add_0_r in *. etransitivity; [apply (IHn i); auto|].
    apply add_items_keep. rewrite fill_length. lia.
Qed.

Lemma most_sound items n room held w v :
  (forall j, j < n -> held j = true -> In (w j, v j) (items j)) ->
  sum (fun j => if held j then w j else 0) n <= room ->
  sum (fun j => if held j then v j else 0) n <= most items n room.
Proof. intros I H. apply (knapsack_sound items n room held w v); auto. Qed.
