(* The invariant behind Schrage's theorem.

   residual l k is the least total that can be left of the list l of remaining works after deleting k of its entries:
   the sum of all but the k largest. It is defined by recursion, without sorting. Four facts carry the proof: order
   does not matter; work done lowers it by no more than the work; work on a smallest positive entry lowers every
   positive residual by exactly one; and the same new entries on both sides keep an inequality between residuals. *)
From Coq Require Import Arith Lia Bool List Permutation.
Import ListNotations.

Fixpoint residual (l : list nat) (k : nat) {struct l} : nat :=
  match l with
  | [] => 0
  | a :: l' =>
    match k with
    | 0 => a + residual l' 0
    | S k' => Nat.min (a + residual l' k) (residual l' k')
    end
  end.

Lemma residual_anti l k : residual l (S k) <= residual l k.
Proof.
  revert k; induction l as [|a l IH]; intros k; simpl; auto.
  destruct k; [pose proof (IH 0); lia|].
  pose proof (IH k); pose proof (IH (S k)); lia.
Qed.

Lemma residual_perm l l' : Permutation l l' -> forall k, residual l k = residual l' k.
Proof.
  induction 1; intros k; auto.
  - simpl. destruct k; rewrite ?IHPermutation; auto.
  - simpl. destruct k as [|[|k]]; simpl; lia.
  - congruence.
Qed.

Lemma residual_zeros (m l : list nat) k :
  (forall x, In x m -> x = 0) -> residual (m ++ l) k = residual l k.
Proof.
  revert k; induction m as [|a m IH]; intros k H; auto.
  assert (a = 0) by (apply H; left; auto); subst.
  assert (forall x, In x m -> x = 0) by (intros; apply H; right; auto).
  simpl. rewrite !IH; auto. destruct k; auto.
  rewrite IH; auto. pose proof (residual_anti l k). lia.
Qed.

(* New entries on both sides keep an inequality. *)
Lemma residual_app_mono (m l l' : list nat) :
  (forall k, residual l k <= residual l' k) -> forall k, residual (m ++ l) k <= residual (m ++ l') k.
Proof.
  intros H. induction m as [|a m IH]; intros k; simpl; auto.
  destruct k.
  - pose proof (IH 0); lia.
  - pose proof (IH k); pose proof (IH (S k)); lia.
Qed.

(* Whatever is done, the residual falls by at most the work done. *)
Lemma residual_dec (js : list nat) (x y : nat -> nat) k :
  residual (map x js) k <= residual (map y js) k + list_sum (map (fun j => x j - y j) js).
Proof.
  revert k; induction js as [|a js IH]; intros k; simpl; auto.
  destruct k.
  - pose proof (IH 0); lia.
  - pose proof (IH k); pose proof (IH (S k)); lia.
Qed.

(* If all positive entries are at least a, one more deletion takes at least a, unless nothing is left. *)
Lemma residual_gap a l :
  (forall x, In x l -> x = 0 \/ a <= x) ->
  forall k, residual l k = 0 \/ a + residual l (S k) <= residual l k.
Proof.
  induction l as [|b l IH]; intros H k; [left; auto|].
  assert (b = 0 \/ a <= b) by (apply H; left; auto).
  assert (forall x, In x l -> x = 0 \/ a <= x) by (intros; apply H; right; auto).
  specialize (IH H1). simpl. destruct k.
  - pose proof (IH 0); pose proof (residual_anti l 0); lia.
  - pose proof (IH k); pose proof (IH (S k)); pose proof (residual_anti l k);
    pose proof (residual_anti l (S k)); lia.
Qed.

(* Work on a smallest positive entry takes one off every positive residual. *)
Lemma residual_smallest a l k :
  0 < a -> (forall x, In x l -> x = 0 \/ a <= x) ->
  residual ((a - 1) :: l) k <= residual (a :: l) k - 1.
Proof.
  intros Ha H. destruct k; simpl; [lia|].
  pose proof (residual_gap a l H k). pose proof (residual_anti l k). lia.
Qed.

(* The number of positive entries can be read off. *)
Definition positives (l : list nat) : nat := length (filter (fun x => 0 <? x) l).

Lemma residual_positives l k : residual l k = 0 <-> positives l <= k.
Proof.
  unfold positives. revert k; induction l as [|a l IH]; intros k; simpl; [lia|].
  destruct (Nat.ltb_spec 0 a); simpl.
  - destruct k; [split; lia|].
    pose proof (IH k); pose proof (IH (S k)). lia.
  - destruct k.
    + pose proof (IH 0). lia.
    + pose proof (IH k); pose proof (IH (S k)). pose proof (residual_anti l k).
      lia.
Qed.

Lemma positives_mono l l' : (forall k, residual l k <= residual l' k) -> positives l <= positives l'.
Proof.
  intros H. apply residual_positives. pose proof (H (positives l')).
  assert (residual l' (positives l') = 0) by (apply residual_positives; lia). lia.
Qed.
