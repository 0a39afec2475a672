(* A checker of schedules without preemption on servers.

   Job j is released at r j, lasts p j, and asks for g j GPUs on at most k j servers; server q has c q GPUs. A schedule says when job
   j starts and ends, and how many GPUs of each server it holds. Times are of any fineness: the checker looks at no more instants
   than there are starts, and accepts exactly the schedules that are valid at every instant (schedule_check_exact). Those keep
   within all GPUs together, as the rivals of all bounds do (valid_schedule_feasible). *)
From Coq Require Import Arith Lia Bool.
From Frostline Require Import Finite Relaxation OptimalityTree.

Section Check.
Variables (n M : nat) (c r g p k start finish : nat -> nat) (on : nat -> nat -> nat).

(* GPUs of server q that are held at instant t. *)
Definition held_on (t q : nat) : nat := sum (fun j => if running start p t j then on j q else 0) n.

Definition valid_schedule : Prop :=
  (forall j, j < n ->
     r j <= start j /\ finish j = start j + p j /\ sum (on j) M = g j /\ sum (fun q => b2n (0 <? on j q)) M <= k j) /\
  (forall t q, q < M -> held_on t q <= c q).

Definition job_check (j : nat) : bool :=
  (r j <=? start j) && (finish j =? start j + p j) && (sum (on j) M =? g j) && (sum (fun q => b2n (0 <? on j q)) M <=? k j).

Definition schedule_check : bool :=
  all job_check n && all (fun j => all (fun q => held_on (start j) q <=? c q) M) n.

Lemma all_true f m : all f m = true <-> forall i, i < m -> f i = true.
Proof.
  induction m; simpl; [split; auto; lia|]. rewrite andb_true_iff, IHm. split.
  - intros [A B] i Hi. destruct (Nat.eq_dec i m) as [->|]; auto. apply B. lia.
  - intros A. split; auto.
Qed.

Lemma job_check_true j : job_check j = true <->
  r j <= start j /\ finish j = start j + p j /\ sum (on j) M = g j /\ sum (fun q => b2n (0 <? on j q)) M <= k j.
Proof. unfold job_check. rewrite !andb_true_iff, !Nat.leb_le, !Nat.eqb_eq. tauto. Qed.

(* Of the first m jobs that run at an instant, the last to start. *)
Lemma last_to_start t m :
  (forall j, j < m -> running start p t j = false) \/
  (exists i, i < m /\ running start p t i = true /\ forall j, j < m -> running start p t j = true -> start j <= start i).
Proof.
  induction m as [|m [N|[i [A [B C]]]]]; [left; lia| |].
  - destruct (running start p t m) eqn:E.
    + right. exists m. repeat split; auto. intros j Hj R. destruct (Nat.eq_dec j m) as [->|]; auto.
      rewrite N in R by lia. discriminate.
    + left. intros j Hj. destruct (Nat.eq_dec j m) as [->|]; auto. apply N. lia.
  - right. destruct (running start p t m) eqn:E.
    + destruct (Nat.le_gt_cases (start m) (start i)) as [L|L]; [exists i|exists m]; repeat split; auto; intros j Hj R;
        destruct (Nat.eq_dec j m) as [->|]; auto; specialize (C j ltac:(lia) R); lia.
    + exists i. repeat split; auto. intros j Hj R. destruct (Nat.eq_dec j m) as [->|]; [congruence|]. apply C; auto. lia.
Qed.

(* No instant is worse than the last start before it. *)
Lemma starts_are_enough t q : held_on t q = 0 \/ exists i, i < n /\ held_on t q <= held_on (start i) q.
Proof.
  unfold held_on. destruct (last_to_start t n) as [N|[i [A [B C]]]]; [left|right; exists i; split; auto].
  - rewrite (sum_ext _ (fun _ => 0)); [apply sum_zero|]. intros j Hj. rewrite N; auto.
  - apply sum_le. intros j Hj. destruct (running start p t j) eqn:E; [|lia].
    assert (R : running start p (start i) j = true); [|rewrite R; auto].
    specialize (C j Hj E). apply running_spec in B, E. apply running_spec. lia.
Qed.

Theorem schedule_check_exact : schedule_check = true <-> valid_schedule.
Proof.
  unfold schedule_check, valid_schedule. rewrite andb_true_iff, !all_true. split; intros [A B]; split.
  - intros j Hj. apply job_check_true, A. auto.
  - intros t q Hq. destruct (starts_are_enough t q) as [Z|[i [Hi L]]]; [lia|].
    etransitivity; [exact L|]. specialize (B i Hi). rewrite all_true in B. apply Nat.leb_le, B. auto.
  - intros j Hj. apply job_check_true, A. auto.
  - intros j Hj. apply all_true. intros q Hq. apply Nat.leb_le, B. auto.
Qed.

Theorem valid_schedule_feasible : valid_schedule ->
  (forall j, j < n -> r j <= start j) /\
  (forall t, sum (fun j => if running start p t j then g j else 0) n <= sum c M).
Proof.
  intros [A B]. split; [intros j Hj; apply A; auto|]. intros t.
  rewrite (sum_ext _ (fun j => sum (fun q => if running start p t j then on j q else 0) M)).
  - rewrite (sum_swap (fun j q => if running start p t j then on j q else 0)). apply sum_le. intros q Hq. apply B. auto.
  - intros j Hj. destruct (A j Hj) as [_ [_ [E _]]]. destruct (running start p t j); [auto|].
    symmetry. apply sum_zero.
Qed.
End Check.
