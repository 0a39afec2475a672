(* The pointwise bound as a checker computes it: no prices, no sorting.

   The bound is a sum over the steps of the virtual machine. In a step as many jobs are unfinished as are on the virtual machine, and
   as many as could not be done by then if each were alone; the greater number counts. The machine is run step by step. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation Pointwise.

Section Check.
Variables (n G : nat) (r g p : nat -> nat).

Let R (j : nat) : nat := G * r j.
Let W (j : nat) : nat := g j * p j.

(* One unit of work more for a job, in a list of what is done. *)
Fixpoint bump (i : nat) (w : list nat) : list nat :=
  match w, i with [], _ => [] | x :: w', 0 => S x :: w' | x :: w', S i' => x :: bump i' w' end.

Definition work_done (w : list nat) (j : nat) : nat := nth j w 0.
Definition serve (u : nat) (w : list nat) : option nat := choose R W (fun w j => W j - w j) (work_done w) u n.

(* Jobs that the machine has not finished or not been given, and jobs that cannot be done, before step u. *)
Definition ahead (u : nat) (w : list nat) : nat := sum (fun j => b2n ((work_done w j <? W j) || (u <? R j))) n.
Definition alone (u : nat) : nat := above (fun j => G * (r j + p j)) n u.

Fixpoint steps (fuel u : nat) (w : list nat) : nat :=
  match fuel with
  | 0 => 0
  | S f => Nat.max (ahead u w) (alone u) + steps f (S u) (match serve u w with Some i => bump i w | None => w end)
  end.

(* G times the bound; after that many steps nobody is left. *)
Definition pointwise_sum : nat := steps (G * sum (fun j => r j + p j) n) 0 (repeat 0 n).

Lemma bump_length i w : length (bump i w) = length w.
Proof. revert i. induction w; destruct i; simpl; auto. Qed.

Lemma nth_bump i w j : i < length w -> nth j (bump i w) 0 = nth j w 0 + b2n (i =? j).
Proof.
  revert i j. induction w; intros i j H; simpl in H; [lia|].
  destruct i, j; simpl; try lia. rewrite IHw by lia. auto.
Qed.

Lemma choose_ext rank w w' t m : (forall j, j < m -> w j = w' j /\ rank w j = rank w' j) ->
  choose R W rank w t m = choose R W rank w' t m.
Proof.
  induction m; intros E; simpl; auto. destruct (E m ltac:(lia)) as [E1 E2].
  rewrite IHm by (intros; apply E; lia). rewrite E1, E2.
  destruct ((R m <=? t) && (w' m <? W m)); auto.
  destruct (choose R W rank w' t m) as [i|] eqn:C; auto.
  pose proof (choose_spec R W rank w' t m) as P. rewrite C in P. destruct P as [[P _] _].
  destruct (E i ltac:(lia)) as [_ E3]. rewrite E3. auto.
Qed.

Variables (st : nat -> nat).
Hypothesis G_pos : 0 < G.
Hypothesis rel : forall j, j < n -> r j <= st j.
Hypothesis cap : forall t, sum (fun j => if running st p t j then g j else 0) n <= G.

Let s : machine := srpt_machine n R W.
Let keeps (u : nat) (w : list nat) : Prop := length w = n /\ forall j, j < n -> work_done w j = served s u j.

Lemma serve_is_machine u w : keeps u w -> serve u w = s u.
Proof.
  intros [_ K]. unfold serve, s, srpt_machine, ranked_machine. apply choose_ext. intros j Hj.
  rewrite K, done_work by auto. auto.
Qed.

Lemma keeps_step u w : keeps u w -> keeps (S u) (match serve u w with Some i => bump i w | None => w end).
Proof.
  intros K. pose proof (serve_is_machine u w K) as E. destruct K as [L K].
  assert (F : forall i, s u = Some i -> i < n).
  { intros i X. apply (srpt_feasible n R W s (srpt_machine_keeps_rule n R W) u i X). }
  rewrite E. unfold keeps. destruct (s u) as [i|] eqn:X.
  - rewrite bump_length. split; auto. intros j Hj. unfold work_done. rewrite nth_bump by (rewrite L; auto).
    rewrite served_S. unfold serves. rewrite X. specialize (K j Hj). unfold work_done in K. lia.
  - split; auto. intros j Hj. rewrite served_S. unfold serves. rewrite X. rewrite K by auto. lia.
Qed.

Lemma alone_sound u : alone u <= above (fun j => G * (st j + p j)) n u.
Proof.
  apply sum_le. intros j Hj. specialize (rel j Hj).
  destruct (Nat.ltb_spec u (G * (r j + p j))), (Nat.ltb_spec u (G * (st j + p j))); cbn [b2n]; try lia. nia.
Qed.

Lemma ahead_sound u w : keeps u w -> ahead u w <= above (fun j => G * (st j + p j)) n u.
Proof.
  intros [_ K]. set (x := running st p).
  assert (X : cluster_feasible n G r g x).
  { split; auto. intros t j Hj E. apply running_spec in E. specialize (rel j Hj). lia. }
  set (t := u / G). pose proof (Nat.mul_div_le u G ltac:(lia)) as L. fold t in L.
  pose proof (Nat.mul_succ_div_gt u G ltac:(lia)) as U. fold t in U.
  pose proof (virtual_fewest_unfinished n G r W s _ G_pos (srpt_machine_keeps_rule n R W) (gpu_work_fluid _ _ _ _ _ X) t) as V.
  set (late := fun j => b2n ((W j =? 0) && (u <? R j))).
  transitivity (unfinished n W (served s) (G * t) + sum late n).
  - unfold ahead, unfinished. rewrite <- sum_plus. apply sum_le. intros j Hj. unfold late. rewrite K by auto.
    pose proof (served_mono s (G * t) u j L) as M.
    destruct (Nat.ltb_spec (served s u j) (W j)), (Nat.ltb_spec (served s (G * t) j) (W j)), (Nat.ltb_spec u (R j)),
      (Nat.eqb_spec (W j) 0); cbn [orb andb b2n]; try lia.
    exfalso. pose proof (served_unreleased n R s u j (srpt_feasible n R W s (srpt_machine_keeps_rule n R W)) ltac:(lia)). lia.
  - transitivity (unfinished n W (received (gpu_work g x)) t + sum late n); [lia|].
    unfold above, unfinished. rewrite <- sum_plus. apply sum_le. intros j Hj. unfold late.
    specialize (rel j Hj). rewrite gpu_work_done. fold (W j).
    destruct (Nat.ltb_spec u (G * (st j + p j))) as [|Q]; cbn [b2n].
    + destruct (Nat.eqb_spec (W j) 0) as [Z|Z]; cbn [andb].
      * destruct (Nat.ltb_spec (g j * slots_run x t j) (W j)); [lia|]. destruct (u <? R j); cbn [b2n]; lia.
      * destruct (g j * slots_run x t j <? W j); cbn [b2n]; lia.
    + assert (T : st j + p j <= t) by nia.
      pose proof (sum_mono_bound (fun u => b2n (x u j)) _ _ T) as M. fold (slots_run x t j) in M.
      change (sum (fun u => b2n (x u j)) (st j + p j)) with (slots_run x (st j + p j) j) in M.
      unfold x in M at 1. rewrite running_slots in M. unfold W.
      destruct (Nat.ltb_spec (g j * slots_run x t j) (g j * p j)); [nia|].
      unfold R. destruct (Nat.ltb_spec u (G * r j)); [nia|]. rewrite andb_false_r. cbn [b2n]. lia.
Qed.

Lemma steps_sound fuel u w : keeps u w ->
  steps fuel u w <= sum (fun i => above (fun j => G * (st j + p j)) n (u + i)) fuel.
Proof.
  revert u w. induction fuel; intros u w K; [auto|]. cbn [steps].
  change (S fuel) with (1 + fuel). rewrite sum_app. cbn [sum]. rewrite Nat.add_0_l, Nat.add_0_r.
  apply Nat.add_le_mono.
  - apply Nat.max_lub; [apply ahead_sound; auto|apply alone_sound].
  - etransitivity; [apply IHfuel, keeps_step, K|]. apply Nat.eq_le_incl, sum_ext. intros i _. f_equal. lia.
Qed.

Lemma pointwise_sum_sound : pointwise_sum <= G * sum (fun j => st j + p j) n.
Proof.
  etransitivity; [apply steps_sound|].
  - split; [apply repeat_length|]. intros j Hj. unfold work_done. rewrite nth_repeat. auto.
  - set (T := G * sum (fun j => r j + p j) n).
    destruct (sum_bounds (fun j => G * (st j + p j)) n) as [T' H].
    rewrite <- (sum_scal G (fun j => st j + p j)), <- (sum_above _ n (T + T')).
    + cbn [Nat.add]. apply sum_mono_bound. lia.
    + intros j Hj. specialize (H j Hj). cbn beta in H. lia.
Qed.
End Check.

(* Sums of completion times are whole numbers: it is enough to prove more than one less. *)
Definition pointwise_certified (n G target : nat) (r g p : nat -> nat) : bool :=
  (0 <? G) && (G * target <? pointwise_sum n G r g p + G).

Theorem pointwise_certificate_sound n G target (r g p : nat -> nat) : pointwise_certified n G target r g p = true ->
  forall st : nat -> nat,
    (forall j, j < n -> r j <= st j) ->
    (forall t, sum (fun j => if running st p t j then g j else 0) n <= G) ->
    target <= sum (fun j => st j + p j) n.
Proof.
  intros H st R A. apply andb_prop in H. destruct H as [Gp H]. apply Nat.ltb_lt in Gp, H.
  pose proof (pointwise_sum_sound n G r g p st Gp R A). nia.
Qed.

(* Instants m times as fine; jobs may be released later and last longer than stated. *)
Theorem rounded_pointwise_sound n G target (r g p : nat -> nat) m : pointwise_certified n G target r g p = true -> 0 < m ->
  forall st d : nat -> nat,
    (forall j, j < n -> m * r j <= st j /\ m * p j <= d j) ->
    (forall t, sum (fun j => if running st d t j then g j else 0) n <= G) ->
    m * target <= sum (fun j => st j + d j) n.
Proof.
  intros H M st d R A.
  pose proof (pointwise_certificate_sound n G target r g p H (fun j => st j / m)) as P.
  etransitivity; [apply Nat.mul_le_mono_l, P|].
  - intros j Hj. apply Nat.div_le_lower_bound; [lia|]. apply R. auto.
  - intros t. etransitivity; [|apply (A (m * t + (m - 1)))]. apply sum_le. intros j Hj. destruct (R j Hj) as [_ L].
    destruct (running (fun j => st j / m) p t j) eqn:E; [|lia].
    rewrite (coarser_running m st d p t j M L E). auto.
  - rewrite <- sum_scal. apply sum_le. intros j Hj.
    destruct (R j Hj) as [_ L]. pose proof (Nat.mul_div_le (st j) m ltac:(lia)). lia.
Qed.
