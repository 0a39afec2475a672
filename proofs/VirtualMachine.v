(* The virtual machine: one machine that serves jobs preemptively, shortest remaining work first.

   Time comes in steps; the machine serves one unit of the work of one job in a step. Job j brings work W j and is
   released at step R j. The SRPT rule is a predicate on schedules of the machine, with ties broken at will: whatever
   is proved holds for every machine that keeps the rule. Such a machine exists (srpt_machine_keeps_rule) and finishes
   every job (srpt_finishes), so that nothing is proved about nothing. Static priority, least original work first, serves
   for another bound (MeanBusy.v). *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite.

(* ---------- a machine and its service ---------- *)

(* The job served in each step, if any. *)
Definition machine := nat -> option nat.

Definition serves (s : machine) (t j : nat) : nat :=
  match s t with Some i => b2n (i =? j) | None => 0 end.

(* Work done on job j before step t. *)
Definition served (s : machine) (t j : nat) : nat := sum (fun u => serves s u j) t.

(* Only released jobs are served. *)
Definition machine_feasible (n : nat) (R : nat -> nat) (s : machine) : Prop :=
  forall t j, s t = Some j -> j < n /\ R j <= t.

(* Released and not finished. *)
Definition alive (n : nat) (R W : nat -> nat) (s : machine) (t j : nat) : Prop :=
  j < n /\ R j <= t /\ served s t j < W j.

(* Shortest remaining work first, any ties: never idle while a job is alive, and serve one of least remaining work. *)
Definition srpt (n : nat) (R W : nat -> nat) (s : machine) : Prop :=
  forall t, match s t with
  | Some j => alive n R W s t j /\
              forall i, alive n R W s t i -> W j - served s t j <= W i - served s t i
  | None => forall i, ~ alive n R W s t i
  end.

(* Static priority: the same, with least original work in place of least remaining work. *)
Definition static_priority (n : nat) (R W : nat -> nat) (s : machine) : Prop :=
  forall t, match s t with
  | Some j => alive n R W s t j /\ forall i, alive n R W s t i -> W j <= W i
  | None => forall i, ~ alive n R W s t i
  end.

(* What both have in common: never idle while a job is alive, and serve an alive job. *)
Definition diligent (n : nat) (R W : nat -> nat) (s : machine) : Prop :=
  forall t, match s t with
  | Some j => alive n R W s t j
  | None => forall i, ~ alive n R W s t i
  end.

(* The number of unfinished jobs, for any account D t j of the work done on job j before t. *)
Definition unfinished (n : nat) (W : nat -> nat) (D : nat -> nat -> nat) (t : nat) : nat :=
  sum (fun j => b2n (D t j <? W j)) n.

(* c is the completion of job j: the first moment at which its work is done. *)
Definition completes (W : nat -> nat) (D : nat -> nat -> nat) (j c : nat) : Prop :=
  W j <= D c j /\ forall t, t < c -> D t j < W j.

Lemma srpt_diligent n R W s : srpt n R W s -> diligent n R W s.
Proof. intros H t. specialize (H t). destruct (s t); [apply H|auto]. Qed.

Lemma static_diligent n R W s : static_priority n R W s -> diligent n R W s.
Proof. intros H t. specialize (H t). destruct (s t); [apply H|auto]. Qed.

Lemma diligent_feasible n R W s : diligent n R W s -> machine_feasible n R s.
Proof. intros H t j E. specialize (H t). rewrite E in H. destruct H as [? [? ?]]. auto. Qed.

Lemma srpt_feasible n R W s : srpt n R W s -> machine_feasible n R s.
Proof. intros H. eapply diligent_feasible, srpt_diligent, H. Qed.

Lemma served_S s t j : served s (S t) j = served s t j + serves s t j.
Proof. reflexivity. Qed.

Lemma served_unreleased n R s t j : machine_feasible n R s -> t <= R j -> served s t j = 0.
Proof.
  intros F. induction t; intros H; auto. rewrite served_S, IHt by lia.
  unfold serves. destruct (s t) as [i|] eqn:E; auto.
  destruct (Nat.eqb_spec i j); simpl; auto. subst. apply F in E. lia.
Qed.

Lemma served_mono s t t' j : t <= t' -> served s t j <= served s t' j.
Proof. apply sum_mono_bound. Qed.

Lemma serves_le_1 s t j : serves s t j <= 1.
Proof. unfold serves. destruct (s t) as [i|]; [destruct (i =? j); cbn [b2n]; lia|lia]. Qed.

Lemma serves_total n R s t : machine_feasible n R s -> sum (fun j => serves s t j) n <= 1.
Proof.
  intros F. unfold serves. destruct (s t) as [i|] eqn:E; [|rewrite sum_zero; lia].
  apply sum_at_most_one. intros a b _ _ Ha Hb. apply Nat.eqb_eq in Ha, Hb. lia.
Qed.

(* ---------- such machines exist ---------- *)

Section Exists.
Variables (n : nat) (R W : nat -> nat).
(* rank w j: the priority of job j, least first, when w is the work done so far *)
Variable rank : (nat -> nat) -> nat -> nat.

(* the alive job of least rank among 0, ..., m-1 *)
Fixpoint choose (w : nat -> nat) (t m : nat) : option nat :=
  match m with
  | 0 => None
  | S j =>
    if (R j <=? t) && (w j <? W j) then
      match choose w t j with
      | Some i => if rank w j <? rank w i then Some j else Some i
      | None => Some j
      end
    else choose w t j
  end.

Fixpoint done (t : nat) : nat -> nat :=
  match t with
  | 0 => fun _ => 0
  | S u => let w := done u in let c := choose w u n in
           fun j => w j + match c with Some i => b2n (i =? j) | None => 0 end
  end.

Definition ranked_machine : machine := fun t => choose (done t) t n.

Lemma done_work t j : done t j = served ranked_machine t j.
Proof. induction t; auto. simpl. rewrite served_S, <- IHt. reflexivity. Qed.

Lemma choose_spec w t m :
  match choose w t m with
  | Some j => (j < m /\ R j <= t /\ w j < W j) /\
              forall i, i < m -> R i <= t -> w i < W i -> rank w j <= rank w i
  | None => forall i, i < m -> R i <= t -> W i <= w i
  end.
Proof.
  induction m as [|m IH]; simpl; [lia|].
  destruct (Nat.leb_spec (R m) t) as [L|L]; simpl.
  - destruct (Nat.ltb_spec (w m) (W m)) as [Q|Q].
    + destruct (choose w t m) as [i|] eqn:E.
      * destruct IH as [[I1 [I2 I3]] IH].
        destruct (Nat.ltb_spec (rank w m) (rank w i)); (split; [lia|]);
        intros k Hk Hr Hw; destruct (Nat.eq_dec k m) as [->|]; try lia;
        specialize (IH k ltac:(lia) Hr Hw); lia.
      * split; [lia|]. intros k Hk Hr Hw. destruct (Nat.eq_dec k m) as [->|]; [lia|].
        specialize (IH k ltac:(lia) Hr). lia.
    + destruct (choose w t m) as [i|] eqn:E.
      * destruct IH as [[I1 [I2 I3]] IH]. split; [lia|].
        intros k Hk Hr Hw. destruct (Nat.eq_dec k m) as [->|]; [lia|]. apply IH; lia.
      * intros k Hk Hr. destruct (Nat.eq_dec k m) as [->|]; [lia|]. apply IH; lia.
  - destruct (choose w t m) as [i|] eqn:E.
    + destruct IH as [[I1 [I2 I3]] IH]. split; [lia|].
      intros k Hk Hr Hw. destruct (Nat.eq_dec k m) as [->|]; [lia|]. apply IH; lia.
    + intros k Hk Hr. destruct (Nat.eq_dec k m) as [->|]; [lia|]. apply IH; lia.
Qed.

Lemma ranked_machine_keeps_rule t :
  match ranked_machine t with
  | Some j => alive n R W ranked_machine t j /\
              forall i, alive n R W ranked_machine t i -> rank (done t) j <= rank (done t) i
  | None => forall i, ~ alive n R W ranked_machine t i
  end.
Proof.
  pose proof (choose_spec (done t) t n) as P. unfold ranked_machine at 1.
  destruct (choose (done t) t n) as [j|].
  - destruct P as [[P1 [P2 P3]] P4]. rewrite done_work in P3. split; [split; auto|].
    intros i [I1 [I2 I3]]. apply P4; auto. rewrite done_work. auto.
  - intros i [I1 [I2 I3]]. rewrite <- done_work in I3. specialize (P i I1 I2). lia.
Qed.
End Exists.

Definition srpt_machine (n : nat) (R W : nat -> nat) : machine := ranked_machine n R W (fun w j => W j - w j).

Theorem srpt_machine_keeps_rule n R W : srpt n R W (srpt_machine n R W).
Proof.
  intros t. pose proof (ranked_machine_keeps_rule n R W (fun w j => W j - w j) t) as H.
  fold (srpt_machine n R W) in H. destruct (srpt_machine n R W t) as [j|]; [|exact H].
  destruct H as [A M]. split; auto. intros i I. specialize (M i I). rewrite !done_work in M. exact M.
Qed.

Definition static_machine (n : nat) (R W : nat -> nat) : machine := ranked_machine n R W (fun _ => W).

Theorem static_machine_keeps_rule n R W : static_priority n R W (static_machine n R W).
Proof. intros t. exact (ranked_machine_keeps_rule n R W (fun _ => W) t). Qed.

(* ---------- every diligent machine ---------- *)

Section Every.
Variables (n : nat) (R W : nat -> nat) (s : machine).
Hypothesis HS : diligent n R W s.

Lemma no_waste t j : served s t j <= W j.
Proof.
  induction t; [unfold served; simpl; lia|]. rewrite served_S. unfold serves.
  pose proof (HS t) as H. destruct (s t) as [i|]; [|lia].
  destruct H as [_ [_ H]]. destruct (Nat.eqb_spec i j); cbn [b2n]; [subst; lia|lia].
Qed.

Lemma serves_one t i : s t = Some i -> sum (fun j => serves s t j) n = 1.
Proof.
  intros E. pose proof (serves_total n R s t (diligent_feasible _ _ _ _ HS)).
  pose proof (HS t) as A. rewrite E in A. destruct A as [A _].
  pose proof (sum_term (fun j => serves s t j) n i A) as B. cbn beta in B.
  unfold serves in B at 1. rewrite E, Nat.eqb_refl in B. cbn [b2n] in B. lia.
Qed.

Lemma total_S t :
  sum (fun j => served s (S t) j) n = sum (fun j => served s t j) n + sum (fun j => serves s t j) n.
Proof. exact (sum_plus (fun j => served s t j) (fun j => serves s t j) n). Qed.

Lemma total_work t : sum (fun j => served s t j) n <= t.
Proof.
  induction t; [unfold served; simpl; rewrite sum_zero; lia|].
  rewrite total_S. pose proof (serves_total n R s t (diligent_feasible _ _ _ _ HS)). lia.
Qed.

Theorem finishes : exists T, forall j, j < n -> W j <= served s T j.
Proof.
  set (T0 := sum R n).
  assert (H : forall k, (exists T, T0 <= T /\ s T = None) \/
                        k <= sum (fun j => served s (T0 + k) j) n).
  { induction k; [right; lia|]. destruct IHk as [IH|IH]; [left; auto|].
    destruct (s (T0 + k)) as [i|] eqn:E; [right|left; exists (T0 + k); split; auto; lia].
    replace (T0 + S k) with (S (T0 + k)) by lia.
    rewrite total_S, (serves_one _ i E). lia. }
  destruct (H (S (sum W n))) as [[T [HT E]]|HT].
  - exists T. intros j Hj. pose proof (HS T) as A. rewrite E in A.
    destruct (Nat.lt_ge_cases (served s T j) (W j)); auto. exfalso. apply (A j).
    split; auto. split; auto. pose proof (sum_term R n j Hj). unfold T0 in HT. lia.
  - exfalso. assert (sum (fun j => served s (T0 + S (sum W n)) j) n <= sum W n)
      by (apply sum_le; intros; apply no_waste). lia.
Qed.
End Every.

Theorem srpt_finishes n R W s : srpt n R W s -> exists T, forall j, j < n -> W j <= served s T j.
Proof. intros H. eapply finishes, srpt_diligent, H. Qed.

(* ---------- completion times as functions ---------- *)

(* the number of moments before T at which the job is unfinished *)
Definition completion (W : nat -> nat) (D : nat -> nat -> nat) (T j : nat) : nat :=
  sum (fun t => b2n (D t j <? W j)) T.

Lemma completion_completes W D T j :
  (forall t t', t <= t' -> D t j <= D t' j) -> W j <= D T j ->
  completes W D j (completion W D T j) /\ completion W D T j <= T.
Proof.
  intros M. unfold completion. induction T; intros H; cbn [sum].
  - split; [split; auto; lia|lia].
  - destruct (Nat.ltb_spec (D T j) (W j)) as [L|L]; cbn [b2n].
    + assert (E : sum (fun t => b2n (D t j <? W j)) T = T).
      { transitivity (sum (fun _ => 1) T); [|rewrite sum_const; lia].
        apply sum_ext. intros t Ht. pose proof (M t T ltac:(lia)).
        destruct (Nat.ltb_spec (D t j) (W j)); auto. lia. }
      rewrite E. split; [split|]; try lia.
      * replace (T + 1) with (S T) by lia. auto.
      * intros t Ht. pose proof (M t T ltac:(lia)). lia.
    + rewrite Nat.add_0_r. destruct (IHT L) as [A B]. split; auto.
Qed.

Lemma completes_le W D j c c' : completes W D j c -> W j <= D c' j -> c <= c'.
Proof.
  intros [_ H] H'. destruct (Nat.lt_ge_cases c' c); auto. specialize (H c' ltac:(lia)). lia.
Qed.

Lemma completes_after_release n R W s j c :
  srpt n R W s -> 0 < W j -> completes W (served s) j c -> R j <= c.
Proof.
  intros HS Wp [A _]. destruct (Nat.le_gt_cases (R j) c) as [|L]; auto.
  rewrite (served_unreleased n R) in A; [lia|eapply srpt_feasible; eauto|lia].
Qed.
