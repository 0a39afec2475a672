(* Capacity prices: a certificate of a lower bound on the sum of completion times.

   Let v t >= 0 be the price of a GPU in slot t, in units of 1/den, zero from slot T on. For every feasible schedule without
   preemption

     den * sum C + G * sum_t v t >= sum_j min_(s >= r j) [den * (s + p j) + g j * sum_(s <= t < s + p j) v t]

   (price_certificate_sound). Any prices are valid, so rounded solutions of a linear program need no repair; price_sum is the
   right side, and is what a checker computes. Jobs may have a choice of GPUs, duration and penalty, for instance of frozen
   layers: then the least over the options counts (price_certificate_with_options_sound). *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation.

(* Whatever runs, the GPUs used cost at most G * sum v. *)
Lemma prices_bound n G r g x v H :
  cluster_feasible n G r g x ->
  sum (fun j => g j * sum (fun t => b2n (x t j) * v t) H) n <= G * sum v H.
Proof.
  intros [A _].
  rewrite (sum_ext _ (fun j => sum (fun t => v t * (if x t j then g j else 0)) H)).
  - rewrite <- (sum_swap (fun t j => v t * (if x t j then g j else 0))), <- sum_scal.
    apply sum_le. intros t _. rewrite sum_scal. specialize (A t).
    pose proof (Nat.mul_le_mono_l _ _ (v t) A). lia.
  - intros j _. rewrite <- sum_scal. apply sum_ext. intros t _. destruct (x t j); cbn [b2n]; lia.
Qed.

(* What it costs to start a job at s. *)
Definition start_cost (den g p : nat) (v : nat -> nat) (s : nat) : nat :=
  den * (s + p) + g * sum (fun i => v (s + i)) p.

(* The least of f s, ..., f (s + k). *)
Fixpoint min_from (f : nat -> nat) (s k : nat) : nat :=
  match k with 0 => f s | S k' => Nat.min (f s) (min_from f (S s) k') end.

Lemma min_from_le f s k i : i <= k -> min_from f s k <= f (s + i).
Proof.
  revert s i. induction k; intros s i H; simpl.
  - replace i with 0 by lia. rewrite Nat.add_0_r. auto.
  - destruct i; [rewrite Nat.add_0_r; lia|].
    specialize (IHk (S s) i ltac:(lia)). replace (s + S i) with (S s + i) by lia. lia.
Qed.

(* What a checker computes: starts beyond T need no look, since prices are zero there. *)
Definition price_sum (n T den : nat) (r g p v : nat -> nat) : nat :=
  sum (fun j => min_from (start_cost den (g j) (p j) v) (r j) (T - r j)) n.

Lemma start_cost_min T den g p v r s :
  (forall t, T <= t -> v t = 0) -> r <= s ->
  min_from (start_cost den g p v) r (T - r) <= start_cost den g p v s.
Proof.
  intros Z H. destruct (Nat.le_gt_cases (s - r) (T - r)).
  - replace s with (r + (s - r)) by lia. apply min_from_le; auto.
  - etransitivity; [apply (min_from_le _ r (T - r) (T - r)); auto|].
    unfold start_cost.
    assert (T <= r + (T - r)) by lia.
    rewrite (sum_ext (fun i => v (r + (T - r) + i)) (fun _ => 0)) by (intros; apply Z; lia).
    rewrite sum_zero. nia.
Qed.

(* what the starts of a machine_feasible schedule cost *)
Theorem price_schedule n G T den (r g p v st : nat -> nat) :
  (forall t, T <= t -> v t = 0) ->
  (forall j, j < n -> r j <= st j) ->
  (forall t, sum (fun j => if running st p t j then g j else 0) n <= G) ->
  sum (fun j => start_cost den (g j) (p j) v (st j)) n
  <= den * sum (fun j => st j + p j) n + G * sum v T.
Proof.
  intros Z R A.
  set (H := T + sum (fun j => st j + p j) n).
  assert (F : cluster_feasible n G r g (running st p)).
  { split; auto. intros t j Hj X. apply andb_prop in X. destruct X as [X _].
    apply Nat.leb_le in X. specialize (R j Hj). lia. }
  assert (V : sum v H = sum v T).
  { unfold H. rewrite sum_app, (sum_ext (fun i => v (T + i)) (fun _ => 0)), sum_zero; auto.
    intros i _. apply Z. lia. }
  rewrite <- V. etransitivity; [|apply Nat.add_le_mono_l, (prices_bound n G r g _ v H F)].
  rewrite <- sum_scal, <- sum_plus. apply sum_le. intros j Hj.
  unfold start_cost. apply Nat.add_le_mono_l, Nat.mul_le_mono_l.
  pose proof (sum_term (fun j => st j + p j) n j Hj) as B. cbn beta in B.
  assert (E : H = st j + (p j + (H - st j - p j))) by (unfold H; lia). rewrite E.
  rewrite sum_app, sum_app.
  rewrite (sum_ext (fun i => v (st j + i)) (fun i => b2n (running st p (st j + i) j) * v (st j + i))).
  - lia.
  - intros i Hi. unfold running.
    destruct (Nat.leb_spec (st j) (st j + i)); [|lia].
    destruct (Nat.ltb_spec (st j + i) (st j + p j)); [|lia]. cbn [andb b2n]. lia.
Qed.

Theorem price_certificate_sound n G T den (r g p v st : nat -> nat) :
  (forall t, T <= t -> v t = 0) ->
  (forall j, j < n -> r j <= st j) ->
  (forall t, sum (fun j => if running st p t j then g j else 0) n <= G) ->
  price_sum n T den r g p v <= den * sum (fun j => st j + p j) n + G * sum v T.
Proof.
  intros Z R A. etransitivity; [|apply (price_schedule n G T den r g p v st Z R A)].
  apply sum_le. intros j Hj. apply start_cost_min; auto.
Qed.

(* ---------- jobs with options ---------- *)

(* The least of f 0, ..., f m. *)
Definition min_upto (f : nat -> nat) (m : nat) : nat := min_from f 0 m.

(* Job j has options 0, ..., last j, each with GPUs, duration and penalty. *)
Definition price_sum_with_options (n T den : nat) (r last : nat -> nat) (g p penalty : nat -> nat -> nat) (v : nat -> nat) :=
  sum (fun j => min_upto (fun o => den * penalty j o + min_from (start_cost den (g j o) (p j o) v) (r j) (T - r j)) (last j)) n.

Theorem price_certificate_with_options_sound n G T den r last (g p penalty : nat -> nat -> nat) (v st choice : nat -> nat) :
  (forall t, T <= t -> v t = 0) ->
  (forall j, j < n -> choice j <= last j) ->
  (forall j, j < n -> r j <= st j) ->
  (forall t, sum (fun j => if running st (fun j => p j (choice j)) t j then g j (choice j) else 0) n <= G) ->
  price_sum_with_options n T den r last g p penalty v
  <= den * sum (fun j => st j + p j (choice j) + penalty j (choice j)) n + G * sum v T.
Proof.
  intros Z Ch R A.
  pose proof (price_certificate_sound n G T den r (fun j => g j (choice j)) (fun j => p j (choice j)) v st Z R A) as H.
  unfold price_sum in H. rewrite sum_plus, Nat.mul_add_distr_l, <- (sum_scal den (fun j => penalty j (choice j))).
  transitivity (sum (fun j => min_from (start_cost den (g j (choice j)) (p j (choice j)) v) (r j) (T - r j)) n
                + sum (fun j => den * penalty j (choice j)) n); [|lia].
  rewrite <- sum_plus. apply sum_le. intros j Hj.
  etransitivity; [apply (min_from_le _ 0 (last j) (choice j) (Ch j Hj))|]. rewrite Nat.add_0_l. lia.
Qed.
