(* What SRPT has already done on the jobs it has not finished is no more than the work of one job.

   Of a job with work W of which x is left, say that it holds the levels x, x + 1, ..., W - 1. Whenever SRPT serves a job,
   the job comes to hold one level more, and every other alive job has at least as much work left: so unfinished jobs
   hold disjoint levels (levels_disjoint), whatever the ties. Therefore jobs that complete in a time of length T bring at
   most T plus the work of one job (work_completed_between). *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine.

Section Levels.
Variables (n : nat) (R W : nat -> nat) (s : machine).
Hypothesis HS : srpt n R W s.

Let left t j := W j - served s t j.
Let holds t j v := left t j <= v < W j.

(* One step: disjoint before, hence disjoint after, for jobs unfinished before. *)
Lemma levels_step t :
  (forall i j v, i < n -> j < n -> i <> j -> served s t i < W i -> served s t j < W j ->
    ~ (holds t i v /\ holds t j v)) ->
  forall i j v, i < n -> j < n -> i <> j -> served s t i < W i -> served s t j < W j ->
    ~ (holds (S t) i v /\ holds (S t) j v).
Proof.
  intros IH.
  (* serving k adds level left t k - 1, which no other job holds *)
  assert (K : forall k j v, j < n -> s t = Some k -> j <> k -> served s t j < W j ->
                v < left t k -> ~ holds t j v).
  { intros k j v Hj E Ne U L [H1 H2]. pose proof (HS t) as M. rewrite E in M. destruct M as [_ M].
    pose proof (srpt_feasible _ _ _ _ HS) as F.
    destruct (Nat.le_gt_cases (R j) t) as [Q|Q].
    - specialize (M j (conj Hj (conj Q U))). unfold left in *. lia.
    - assert (served s t j = 0) by (eapply served_unreleased; eauto; lia). unfold left in *. lia. }
  intros i j v Hi Hj Ne Ui Uj [[A1 A2] [B1 B2]]. unfold left in A1, B1. rewrite served_S in A1, B1.
  unfold serves in A1, B1. destruct (s t) as [k|] eqn:E.
  - destruct (Nat.eqb_spec k i), (Nat.eqb_spec k j); cbn [b2n] in A1, B1; subst; try contradiction.
    + destruct (Nat.lt_ge_cases v (left t i)).
      * apply (K i j v); auto. split; unfold left; lia.
      * apply (IH i j v Hi Hj Ne Ui Uj). split; split; unfold left in *; lia.
    + destruct (Nat.lt_ge_cases v (left t j)).
      * apply (K j i v); auto. split; unfold left; lia.
      * apply (IH i j v Hi Hj Ne Ui Uj). split; split; unfold left in *; lia.
    + apply (IH i j v Hi Hj Ne Ui Uj). split; split; unfold left; lia.
  - apply (IH i j v Hi Hj Ne Ui Uj). split; split; unfold left; lia.
Qed.

Theorem levels_disjoint t : forall i j v, i < n -> j < n -> i <> j -> served s t i < W i -> served s t j < W j ->
  ~ (holds t i v /\ holds t j v).
Proof.
  induction t; intros i j v Hi Hj Ne Ui Uj.
  - intros [[A1 A2] _]. unfold left, served in A1. simpl in A1. lia.
  - apply (levels_step t IHt); auto;
    [pose proof (served_mono s t (S t) i)|pose proof (served_mono s t (S t) j)]; lia.
Qed.

(* The same for jobs that were unfinished up to the step before t. *)
Lemma levels_disjoint_late t : forall i j v, i < n -> j < n -> i <> j ->
  (forall u, u < t -> served s u i < W i) -> (forall u, u < t -> served s u j < W j) ->
  ~ (holds t i v /\ holds t j v).
Proof.
  destruct t; intros i j v Hi Hj Ne Ui Uj.
  - intros [[A1 A2] _]. unfold left, served in A1. simpl in A1. lia.
  - apply levels_step; auto. apply levels_disjoint.
Qed.

(* A set A of jobs, none finished before t, none of more work than w. *)
Theorem attained_service t (A : nat -> bool) w :
  (forall j, j < n -> A j = true -> W j <= w /\ forall u, u < t -> served s u j < W j) ->
  sum (fun j => if A j then served s t j else 0) n <= w.
Proof.
  intros H.
  transitivity (sum (fun v => sum (fun j => b2n (A j && ((left t j <=? v) && (v <? W j)))) n) w).
  - rewrite sum_swap. apply sum_le. intros j Hj. destruct (A j) eqn:Aj; [|lia].
    destruct (H j Hj Aj) as [Ww _]. cbn [andb].
    rewrite sum_between by exact Ww. unfold left. pose proof (no_waste n R W s (srpt_diligent _ _ _ _ HS) t j). lia.
  - rewrite <- (Nat.mul_1_r w) at 2. rewrite <- (sum_const 1). apply sum_le. intros v _.
    apply sum_at_most_one. intros i j Hi Hj Bi Bj. apply andb_prop in Bi, Bj.
    destruct Bi as [Ai Bi], Bj as [Aj Bj]. apply andb_prop in Bi, Bj.
    rewrite Nat.leb_le, Nat.ltb_lt in Bi, Bj.
    destruct (Nat.eq_dec i j) as [|Ne]; auto. exfalso.
    apply (levels_disjoint_late t i j v Hi Hj Ne); [apply H; auto|apply H; auto|]. split; auto.
Qed.

(* Jobs that complete in [t1, t2] bring at most t2 - t1, plus the work of one job. *)
Theorem work_completed_between t1 t2 (A : nat -> bool) w (Cv : nat -> nat) :
  t1 <= t2 ->
  (forall j, j < n -> A j = true -> W j <= w /\ completes W (served s) j (Cv j) /\ t1 <= Cv j <= t2) ->
  sum (fun j => if A j then W j else 0) n <= (t2 - t1) + w.
Proof.
  intros L H.
  transitivity (sum (fun j => (if A j then served s t1 j else 0) + (served s t2 j - served s t1 j)) n).
  - apply sum_le. intros j Hj. destruct (A j) eqn:Aj; [|lia].
    destruct (H j Hj Aj) as [_ [[C _] [C1 C2]]].
    pose proof (served_mono s (Cv j) t2 j C2). pose proof (served_mono s t1 t2 j L). lia.
  - rewrite sum_plus. rewrite Nat.add_comm. apply Nat.add_le_mono.
    + pose proof (srpt_feasible _ _ _ _ HS) as F. clear H. induction L.
      * rewrite (sum_ext _ (fun _ => 0)), sum_zero; [lia|]. intros; lia.
      * replace (S m - t1) with (m - t1 + 1) by lia.
        transitivity (sum (fun j => (served s m j - served s t1 j) + serves s m j) n).
        -- apply sum_le. intros j _. rewrite served_S. lia.
        -- rewrite sum_plus. apply Nat.add_le_mono; [exact IHL|exact (serves_total n R s m F)].
    + apply attained_service. intros j Hj Aj. destruct (H j Hj Aj) as [Ww [[_ C] [C1 _]]].
      split; auto. intros u Hu. apply C. lia.
Qed.
End Levels.
