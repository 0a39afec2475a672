(* Prices: a certificate of a lower bound on the weighted sum of completion times and penalties.

   GPUs have prices, and a job pays for what it holds while it runs: pay j t in slot t. If no jobs that run side by side pay
   more than charge t at once, then for every feasible schedule without preemption, with prices in units of 1/den,

     den * sum (weight * C) + sum_t charge t >= sum_j [den * weight j * C j + sum_(start j <= t < C j) pay j t]

   (price_schedule), and a job costs at least the least that it costs at any start. Any prices are valid, so rounded solutions of a
   linear program need no repair; price_sum is the right side at the cheapest starts, and is what a checker computes. With a price
   v t of one GPU, all jobs together pay at most G * v t (price_certificate_sound). Jobs may have a choice of GPUs, duration and
   penalty, for instance of frozen layers: then the least over the options counts (price_certificate_with_options_sound).
   OptimalityTree.v has prices that differ between jobs, and charges below G * v t. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation.

(* What a job costs that starts at s: its completion, and what it pays. *)
Definition start_cost (den weight p : nat) (pay : nat -> nat) (s : nat) : nat :=
  den * (weight * (s + p)) + sum (fun i => pay (s + i)) p.

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

(* Starts beyond T need no look where nothing is paid from T on. *)
Lemma start_cost_min T den weight p pay r s :
  (forall t, T <= t -> pay t = 0) -> r <= s ->
  min_from (start_cost den weight p pay) r (T - r) <= start_cost den weight p pay s.
Proof.
  intros Z H. destruct (Nat.le_gt_cases (s - r) (T - r)).
  - replace s with (r + (s - r)) by lia. apply min_from_le; auto.
  - etransitivity; [apply (min_from_le _ r (T - r) (T - r)); auto|].
    unfold start_cost.
    assert (T <= r + (T - r)) by lia.
    rewrite (sum_ext (fun i => pay (r + (T - r) + i)) (fun _ => 0)) by (intros; apply Z; lia).
    rewrite sum_zero. rewrite Nat.add_0_r. etransitivity; [|apply Nat.le_add_r].
    apply Nat.mul_le_mono_l, Nat.mul_le_mono_l. lia.
Qed.

(* What a job pays while it runs, slot by slot. *)
Lemma paid_while_running st p (pay : nat -> nat) j H : st j + p j <= H ->
  sum (fun i => pay (st j + i)) (p j) <= sum (fun t => if running st p t j then pay t else 0) H.
Proof.
  intros L. replace H with (st j + (p j + (H - st j - p j))) by lia. rewrite sum_app, sum_app.
  rewrite (sum_ext (fun i => pay (st j + i)) (fun i => if running st p (st j + i) j then pay (st j + i) else 0)).
  - lia.
  - intros i Hi. destruct (running st p (st j + i) j) eqn:E; auto.
    exfalso. assert (running st p (st j + i) j = true) by (apply running_spec; lia). congruence.
Qed.

Theorem price_schedule n T den (weight p st : nat -> nat) (pay : nat -> nat -> nat) (charge : nat -> nat) :
  (forall j t, T <= t -> pay j t = 0) ->
  (forall t, t < T -> sum (fun j => if running st p t j then pay j t else 0) n <= charge t) ->
  sum (fun j => start_cost den (weight j) (p j) (pay j) (st j)) n
  <= den * sum (fun j => weight j * (st j + p j)) n + sum charge T.
Proof.
  intros Z A. unfold start_cost. rewrite sum_plus, sum_scal. apply Nat.add_le_mono_l.
  set (H := T + sum (fun j => st j + p j) n).
  transitivity (sum (fun j => sum (fun t => if running st p t j then pay j t else 0) H) n).
  - apply sum_le. intros j Hj. apply paid_while_running.
    pose proof (sum_term (fun j => st j + p j) n j Hj) as B. cbn beta in B. unfold H. lia.
  - rewrite (sum_swap (fun j t => if running st p t j then pay j t else 0)). unfold H. rewrite sum_app.
    assert (F : sum (fun i => sum (fun j => if running st p (T + i) j then pay j (T + i) else 0) n)
                  (sum (fun j => st j + p j) n) = 0).
    { rewrite (sum_ext _ (fun _ => 0)); [apply sum_zero|]. intros i _.
      rewrite (sum_ext _ (fun _ => 0)); [apply sum_zero|].
      intros j _. rewrite Z by lia. destruct (running st p (T + i) j); auto. }
    rewrite F, Nat.add_0_r. apply sum_le. auto.
Qed.

(* ---------- one price of a GPU ---------- *)

(* What a checker computes. *)
Definition price_sum (n T den : nat) (weight r g p v : nat -> nat) : nat :=
  sum (fun j => min_from (start_cost den (weight j) (p j) (fun t => g j * v t)) (r j) (T - r j)) n.

Theorem price_certificate_sound n G T den (weight r g p v st : nat -> nat) :
  (forall t, T <= t -> v t = 0) ->
  (forall j, j < n -> r j <= st j) ->
  (forall t, sum (fun j => if running st p t j then g j else 0) n <= G) ->
  price_sum n T den weight r g p v <= den * sum (fun j => weight j * (st j + p j)) n + G * sum v T.
Proof.
  intros Z R A. rewrite <- (sum_scal G v T).
  etransitivity; [|apply (price_schedule n T den weight p st (fun j t => g j * v t) (fun t => G * v t))].
  - apply sum_le. intros j Hj. apply start_cost_min; auto. intros. rewrite Z; auto.
  - intros. rewrite Z; auto.
  - intros t _. rewrite (sum_ext _ (fun j => v t * (if running st p t j then g j else 0))).
    + rewrite sum_scal. specialize (A t). nia.
    + intros j _. destruct (running st p t j); lia.
Qed.

(* ---------- jobs with options ---------- *)

(* The least of f 0, ..., f m. *)
Definition min_upto (f : nat -> nat) (m : nat) : nat := min_from f 0 m.

Lemma min_upto_le f m i : i <= m -> min_upto f m <= f i.
Proof. intros H. apply (min_from_le f 0 m i H). Qed.

(* Job j has options 0, ..., last j, each with GPUs, duration and penalty. *)
Definition price_sum_with_options
  (n T den : nat) (weight r last : nat -> nat) (g p penalty : nat -> nat -> nat) (v : nat -> nat) : nat :=
  sum (fun j => min_upto (fun o => den * penalty j o
         + min_from (start_cost den (weight j) (p j o) (fun t => g j o * v t)) (r j) (T - r j)) (last j)) n.

Theorem price_certificate_with_options_sound
  n G T den weight r last (g p penalty : nat -> nat -> nat) (v st choice : nat -> nat) :
  (forall t, T <= t -> v t = 0) ->
  (forall j, j < n -> choice j <= last j) ->
  (forall j, j < n -> r j <= st j) ->
  (forall t, sum (fun j => if running st (fun j => p j (choice j)) t j then g j (choice j) else 0) n <= G) ->
  price_sum_with_options n T den weight r last g p penalty v
  <= den * sum (fun j => weight j * (st j + p j (choice j)) + penalty j (choice j)) n + G * sum v T.
Proof.
  intros Z Ch R A.
  pose proof (price_certificate_sound n G T den weight r (fun j => g j (choice j)) (fun j => p j (choice j)) v st Z R A) as H.
  unfold price_sum in H. rewrite sum_plus, Nat.mul_add_distr_l, <- (sum_scal den (fun j => penalty j (choice j))).
  transitivity (sum (fun j => min_from (start_cost den (weight j) (p j (choice j)) (fun t => g j (choice j) * v t))
                                (r j) (T - r j)) n
                + sum (fun j => den * penalty j (choice j)) n); [|lia].
  rewrite <- sum_plus. apply sum_le. intros j Hj.
  etransitivity; [apply (min_upto_le _ (last j) (choice j) (Ch j Hj))|]. lia.
Qed.
