(* Bounds on the k-th completion.

   Sorted, the virtual completions are below the completions of every cluster schedule one by one
   (kth_virtual_completion), and so are release + duration. Hence the sum over k of the greater of the two k-th values is a
   lower bound on the sum of completion times (pointwise_lower_bound). *)
From Coq Require Import Arith Lia Bool List Permutation.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation.

(* How many of f 0, ..., f (n-1) exceed u. *)
Definition above (f : nat -> nat) (n u : nat) : nat := sum (fun j => b2n (u <? f j)) n.

(* a lists the values of f in order *)
Definition sorts (n : nat) (a f : nat -> nat) : Prop :=
  (forall k l, k <= l -> l < n -> a k <= a l) /\ Permutation (map a (seq 0 n)) (map f (seq 0 n)).

Lemma list_sum_perm l l' : Permutation l l' -> list_sum l = list_sum l'.
Proof. induction 1; simpl; lia. Qed.

Lemma sorts_sum (F : nat -> nat) n a f : sorts n a f -> sum (fun j => F (a j)) n = sum (fun j => F (f j)) n.
Proof.
  intros [_ P]. rewrite <- (sum_list (fun j => F (a j))), <- (sum_list (fun j => F (f j))).
  rewrite <- (map_map a F), <- (map_map f F). apply list_sum_perm, Permutation_map, P.
Qed.

Lemma sorts_above n a f u : sorts n a f -> above a n u = above f n u.
Proof. apply (sorts_sum (fun x => b2n (u <? x))). Qed.

(* Of two sets that are closed upwards, one contains the other. *)
Lemma above_max n a b u :
  (forall k l, k <= l -> l < n -> a k <= a l) -> (forall k l, k <= l -> l < n -> b k <= b l) ->
  above (fun k => Nat.max (a k) (b k)) n u <= Nat.max (above a n u) (above b n u).
Proof.
  intros A B.
  destruct (search (fun k => u < a k /\ b k <= u) n) as [[k [Hk [Ak Bk]]]|F]; [intros; lia| |].
  - transitivity (above a n u); [|lia]. apply sum_le. intros j Hj.
    destruct (Nat.ltb_spec u (Nat.max (a j) (b j))), (Nat.ltb_spec u (a j)); cbn [b2n]; try lia.
    destruct (Nat.le_gt_cases k j); [specialize (A k j ltac:(lia) Hj)|specialize (B j k ltac:(lia) Hk)]; lia.
  - transitivity (above b n u); [|lia]. apply sum_le. intros j Hj. specialize (F j Hj).
    destruct (Nat.ltb_spec u (Nat.max (a j) (b j))), (Nat.ltb_spec u (b j)); cbn [b2n]; lia.
Qed.

Lemma sum_above f n T : (forall j, j < n -> f j <= T) -> sum (above f n) T = sum f n.
Proof.
  intros H. unfold above. rewrite sum_swap. apply sum_ext. intros j Hj.
  apply (sum_lt (f j) T (H j Hj)).
Qed.

(* Comparing counts compares sorted values. *)
Lemma above_kth n a c : (forall k l, k <= l -> l < n -> a k <= a l) -> (forall k l, k <= l -> l < n -> c k <= c l) ->
  (forall u, above a n u <= above c n u) -> forall k, k < n -> a k <= c k.
Proof.
  intros A C H k Hk. destruct (Nat.le_gt_cases (a k) (c k)) as [|L]; auto. exfalso.
  specialize (H (c k)). unfold above in H.
  replace n with (k + S (n - S k)) in H at 1 by lia. replace n with (S k + (n - S k)) in H at 2 by lia.
  rewrite !sum_app in H.
  rewrite (sum_ext (fun i => b2n (c k <? a (k + i))) (fun _ => 1)) in H.
  2:{ intros i Hi. specialize (A k (k + i) ltac:(lia) ltac:(lia)).
      destruct (Nat.ltb_spec (c k) (a (k + i))); cbn [b2n]; lia. }
  rewrite (sum_ext (fun j => b2n (c k <? c j)) (fun _ => 0) (S k)) in H.
  2:{ intros j Hj. specialize (C j k ltac:(lia) Hk). destruct (Nat.ltb_spec (c k) (c j)); cbn [b2n]; lia. }
  rewrite sum_zero, sum_const in H.
  assert (sum (fun i => b2n (c k <? c (S k + i))) (n - S k) <= n - S k); [|lia].
  rewrite <- (Nat.mul_1_r (n - S k)) at 2. rewrite <- (sum_const 1). apply sum_le.
  intros i _. destruct (c k <? c (S k + i)); cbn [b2n]; lia.
Qed.

Section Bound.
Variables (n G : nat) (r g p : nat -> nat) (s : machine) (x : runs) (Cv C : nat -> nat).
Hypothesis Gpos : 0 < G.
Hypothesis HS : srpt n (fun j => G * r j) (fun j => g j * p j) s.
Hypothesis HV : forall j, j < n -> completes (fun j => g j * p j) (served s) j (Cv j).
Hypothesis HX : cluster_feasible n G r g x.
Hypothesis HC : forall j, j < n -> p j <= slots_run x (C j) j.

Let W j := g j * p j.

(* At every step, at most as many virtual completions lie ahead as completions of the schedule. *)
Lemma virtual_ahead u : above Cv n u <= above (fun j => G * C j) n u.
Proof.
  set (t := u / G). pose proof (Nat.mul_div_le u G ltac:(lia)) as L. fold t in L.
  assert (U : u < G * S t) by (apply Nat.mul_succ_div_gt; lia).
  transitivity (unfinished n W (served s) (G * t)); [|transitivity (unfinished n W (received (gpu_work g x)) t)].
  - apply sum_le. intros j Hj. pose proof (proj2 (HV j Hj) : forall t, t < Cv j -> served s t j < W j) as B.
    destruct (Nat.ltb_spec u (Cv j)); cbn [b2n]; [|lia].
    specialize (B (G * t) ltac:(lia)). destruct (Nat.ltb_spec (served s (G * t) j) (W j)); cbn [b2n]; lia.
  - apply (virtual_fewest_unfinished n G r W s _ Gpos HS (gpu_work_fluid _ _ _ _ _ HX)).
  - apply sum_le. intros j Hj.
    destruct (Nat.ltb_spec (received (gpu_work g x) t j) (W j)) as [A|A]; cbn [b2n]; [|lia].
    destruct (Nat.ltb_spec u (G * C j)) as [|B]; cbn [b2n]; [lia|]. exfalso.
    assert (C j <= t) by nia. rewrite gpu_work_done in A. unfold W in A.
    pose proof (sum_mono_bound (fun u => b2n (x u j)) (C j) t H) as M.
    fold (slots_run x (C j) j) (slots_run x t j) in M. specialize (HC j Hj). nia.
Qed.

(* The k-th virtual completion is at most the k-th completion of every schedule. *)
Theorem kth_virtual_completion a c : sorts n a Cv -> sorts n c C -> forall k, k < n -> a k <= G * c k.
Proof.
  intros A B. apply above_kth; [apply A| |].
  - intros k l Hk Hl. apply Nat.mul_le_mono_l, B; auto.
  - intros u. rewrite (sorts_above n a Cv u A). etransitivity; [apply virtual_ahead|].
    apply Nat.eq_le_incl. symmetry. exact (sorts_sum (fun v => b2n (u <? G * v)) n c C B).
Qed.

Theorem pointwise_lower_bound a b :
  (forall j, j < n -> 0 < p j) -> sorts n a Cv -> sorts n b (fun j => G * (r j + p j)) ->
  sum (fun k => Nat.max (a k) (b k)) n <= G * sum C n.
Proof.
  intros P A B.
  destruct (sum_bounds (fun k => Nat.max (a k) (b k)) n) as [T1 H1].
  destruct (sum_bounds (fun j => G * C j) n) as [T2 H2].
  rewrite <- sum_scal, <- (sum_above _ n (T1 + T2)), <- (sum_above (fun j => G * C j) n (T1 + T2)).
  2: intros j Hj; specialize (H2 j Hj); cbn beta in H2; lia.
  2: intros j Hj; specialize (H1 j Hj); cbn beta in H1; lia.
  apply sum_le. intros u _. etransitivity; [apply above_max; [apply A|apply B]|].
  rewrite (sorts_above n a Cv u A), (sorts_above n b _ u B).
  apply Nat.max_lub; [apply virtual_ahead|]. apply sum_le. intros j Hj.
  pose proof (completion_after_release n G r g p x C j HX Hj (P j Hj) (HC j Hj)).
  destruct (Nat.ltb_spec u (G * (r j + p j))), (Nat.ltb_spec u (G * C j)); cbn [b2n]; try lia. nia.
Qed.
End Bound.
