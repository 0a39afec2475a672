(* Virtual order with backfill and budget: how long a due job waits.

   Jobs become due at times due j, in an order key. The head is the first due job that has not started; it starts as soon
   as it fits. Besides, a job may start out of order
   - as a backfill: while the head is blocked, if it ends before the head could start beside the other jobs then running,
     backfills not counted;
   - on the budget: if jobs so started never hold more than E GPUs.
   While a job is due and waits, jobs ahead of it hold at least B - E GPUs, so that its wait is at most the work ahead of it
   over B - E (waiting_bound). Backfill costs nothing. Times are whole numbers of any unit. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation Saturation.

Section Rules.
Variables (n : nat) (key due d start : nat -> nat) (blocked : placement_rule).

Definition running_at (t : nat) : jobs := running start d t.

(* Job h is the first due job that has not started by t. *)
Definition head (t h : nat) : Prop :=
  h < n /\ due h <= t < start h /\ forall j, j < n -> key j < key h -> start j <= t.

(* Job i starts when it is due and all jobs ahead of it have started. *)
Definition in_order (i : nat) : Prop :=
  due i <= start i /\ forall j, j < n -> key j < key i -> start j <= start i.

(* Job b starts while the head h is blocked, and for as long as b runs, h is blocked by the jobs of the core alone that
   had started by then. *)
Definition backfilled (core : jobs) (b : nat) : Prop :=
  exists h, head (start b) h /\
  forall t, start b <= t < start b + d b ->
    blocked (fun j => core j && (start j <=? start b) && running_at t j) h.

(* A job fits beside those that already run. *)
Definition fits_at_start : Prop :=
  forall i, i < n -> ~ blocked (fun j => (start j <? start i) && running_at (start i) j) i.

Hypothesis key_inj : forall i j, i < n -> j < n -> key i = key j -> i = j.
Hypothesis key_due : forall i j, i < n -> j < n -> key j < key i -> due j <= due i.
Hypothesis blocked_mono : monotone n blocked.

(* While a job is due and waits, there is a head, and it is not behind that job. *)
Lemma some_head i t : i < n -> due i <= t < start i -> exists h, head t h /\ key h <= key i.
Proof.
  remember (key i) as K eqn:E. revert i E.
  induction K as [K IH] using lt_wf_ind. intros i E Hi L.
  destruct (search (fun j => key j < K /\ t < start j) n) as [[j [Hj [Kj Sj]]]|F]; [intros; lia| |].
  - destruct (IH (key j) Kj j eq_refl Hj) as [h [A B]].
    + pose proof (key_due i j Hi Hj ltac:(lia)). lia.
    + exists h. split; [exact A|lia].
  - exists i. subst K. split; [|lia]. split; [auto|]. split; [auto|].
    intros j Hj Kj. specialize (F j Hj). lia.
Qed.

(* A blocked head is blocked even without the backfills. *)
Lemma core_blocks_head (core : jobs) t h :
  fits_at_start -> (forall b, b < n -> core b = false -> backfilled core b) ->
  head t h -> blocked (running_at t) h ->
  blocked (fun j => core j && running_at t j) h.
Proof.
  intros Fit Back [Hh [[Dh Sh] Ah]] Q.
  destruct (search (fun b => core b = false /\ running_at t b = true) n) as [[b [Hb [Cb Rb]]]|None].
  { intros b. destruct (core b), (running_at t b); auto; right; intros [? ?]; discriminate. }
  - destruct (Back b Hb Cb) as [h' [[Hh' [[Dh' Sh'] Ah']] P]].
    apply running_spec in Rb.
    destruct (Nat.lt_trichotomy (key h') (key h)) as [L|[L|L]].
    + (* h' has started since, beside jobs that blocked it *)
      exfalso. specialize (Ah h' Hh' L). apply (Fit h' Hh').
      eapply blocked_mono; [|apply (P (start h')); lia].
      intros j Hj X. cbn beta in X |- *. rewrite !andb_true_iff, Nat.leb_le in X.
      rewrite andb_true_iff, Nat.ltb_lt. split; [lia|tauto].
    + apply key_inj in L; auto. subst h'. eapply blocked_mono; [|apply (P t); lia].
      intros j Hj X. cbn beta in X |- *. rewrite !andb_true_iff in X. rewrite andb_true_iff. tauto.
    + exfalso. specialize (Ah' h Hh L). lia.
  - eapply blocked_mono; [|exact Q]. intros j Hj X. cbn beta. rewrite X, andb_true_r.
    destruct (core j) eqn:E; auto. exfalso. apply (None j Hj). auto.
Qed.

(* A job that has started in order by t is ahead of every job that waits at t. *)
Lemma in_order_is_ahead i j t : j < n -> i < n -> in_order j -> start j <= t < start i -> key j < key i.
Proof.
  intros Hj Hi [_ A] L. destruct (Nat.lt_trichotomy (key j) (key i)) as [|[E|K]]; auto; exfalso.
  - apply key_inj in E; auto. subst. lia.
  - specialize (A i Hi K). lia.
Qed.

(* ---------- budget ---------- *)

Variable g : nat -> nat.

Inductive manner := InOrder | Backfill | OnBudget.

Definition is_core (m : manner) : bool := match m with Backfill => false | _ => true end.
Definition is_budget (m : manner) : bool := match m with OnBudget => true | _ => false end.

Lemma not_core m : is_core m = false -> m = Backfill.
Proof. destruct m; auto; discriminate. Qed.

(* The rules of virtual order with backfill and a budget of E GPUs. *)
Record virtual_order (E : nat) (how : nat -> manner) : Prop := {
  head_starts_when_it_fits : forall t h, head t h -> blocked (running_at t) h;
  every_start_fits : fits_at_start;
  in_order_starts : forall i, i < n -> how i = InOrder -> in_order i;
  backfill_starts : forall b, b < n -> how b = Backfill -> backfilled (fun j => is_core (how j)) b;
  budget_kept : forall t, busy n g (fun j => is_budget (how j) && running_at t j) <= E
}.

(* GPU-time of the jobs ahead of job i. *)
Definition work_ahead (i : nat) : nat := sum (fun j => if key j <? key i then g j * d j else 0) n.

Variables (B E : nat) (how : nat -> manner).
Hypothesis saturated : saturates n g blocked B.
Hypothesis rules : virtual_order E how.

(* While job i is due and waits, jobs ahead of it hold at least B - E GPUs. *)
Lemma busy_ahead i t : i < n -> due i <= t < start i ->
  B - E <= busy n g (fun j => (key j <? key i) && running_at t j).
Proof.
  intros Hi L. destruct (some_head i t Hi L) as [h [H K]].
  pose proof (core_blocks_head (fun j => is_core (how j)) t h (every_start_fits _ _ rules)) as Q.
  specialize (Q (fun b Hb X => backfill_starts _ _ rules b Hb (not_core _ X))).
  specialize (Q H (head_starts_when_it_fits _ _ rules t h H)).
  apply saturated in Q; [|apply H].
  pose proof (budget_kept _ _ rules t) as Bud.
  assert (busy n g (fun j => is_core (how j) && running_at t j) <=
          busy n g (fun j => (key j <? key i) && running_at t j)
          + busy n g (fun j => is_budget (how j) && running_at t j)); [|lia].
  unfold busy. rewrite <- sum_plus. apply sum_le. intros j Hj.
  destruct (running_at t j) eqn:R; rewrite ?andb_true_r, ?andb_false_r; [|lia].
  destruct (how j) eqn:Hw; cbn [is_core is_budget]; try lia.
  apply running_spec in R.
  assert (key j < key i) by (apply (in_order_is_ahead i j t); auto; [apply (in_order_starts _ _ rules); auto|lia]).
  destruct (Nat.ltb_spec (key j) (key i)); lia.
Qed.

(* Whatever runs of a set of jobs, it runs for at most the GPU-time of the set. *)
Lemma busy_over_time (A : jobs) T :
  sum (fun t => busy n g (fun j => A j && running_at t j)) T <= sum (fun j => if A j then g j * d j else 0) n.
Proof.
  unfold busy. rewrite sum_swap. apply sum_le. intros j Hj.
  destruct (A j); cbn [andb]; [|rewrite sum_zero; lia].
  rewrite (sum_ext _ (fun t => g j * b2n (running_at t j))), sum_scal.
  - apply Nat.mul_le_mono_l. exact (running_slots_le start d T j).
  - intros t _. destruct (running_at t j); cbn [b2n]; lia.
Qed.

(* The wait from becoming due to the start. *)
Theorem waiting_bound i : i < n -> (start i - due i) * (B - E) <= work_ahead i.
Proof.
  intros Hi. etransitivity; [|apply (busy_over_time (fun j => key j <? key i) (start i))].
  destruct (Nat.le_gt_cases (start i) (due i)) as [L|L].
  - replace (start i - due i) with 0 by lia. lia.
  - replace (start i) with (due i + (start i - due i)) at 2 by lia. rewrite sum_app, <- sum_const.
    etransitivity; [|apply Nat.le_add_l]. apply sum_le. intros k Hk. apply busy_ahead; auto. lia.
Qed.
End Rules.
