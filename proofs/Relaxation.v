(* The cluster and its relaxation.

   A cluster of G identical GPUs; job j needs g j GPUs at once for p j slots, from slot r j on. A schedule may preempt and
   migrate at will. Seen as a fluid of GPU-slots it is a rival of the virtual machine that brings work g j * p j for each
   job; so the virtual completions bound every schedule from below: sum C^V <= G * sum C (virtual_machine_lower_bound).
   Placement only restricts schedules further, so the bound holds for every rule of placement. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage.

(* A cluster schedule, preemptive or not, migrating or not: which jobs run in which slot. *)
Definition runs := nat -> nat -> bool.

Definition cluster_feasible (n G : nat) (r g : nat -> nat) (x : runs) : Prop :=
  (forall t, sum (fun j => if x t j then g j else 0) n <= G) /\
  (forall t j, j < n -> x t j = true -> r j <= t).

(* Slots that job j has had before slot t. *)
Definition slots_run (x : runs) (t j : nat) : nat := sum (fun u => b2n (x u j)) t.

(* GPU-slots that a job gets in a slot. *)
Definition gpu_work (g : nat -> nat) (x : runs) (t j : nat) : nat := if x t j then g j else 0.

Lemma gpu_work_fluid n G r g x :
  cluster_feasible n G r g x -> fluid_feasible n G r (gpu_work g x).
Proof.
  intros [A B]. split; auto. intros t j Hj H. unfold gpu_work in H.
  destruct (x t j) eqn:E; [auto|lia].
Qed.

Lemma gpu_work_done g x t j : received (gpu_work g x) t j = g j * slots_run x t j.
Proof.
  unfold received, slots_run. rewrite <- sum_scal. apply sum_ext. intros u _. unfold gpu_work.
  destruct (x u j); cbn [b2n]; lia.
Qed.

(* ---------- the lower bound ---------- *)

(* Against any fluid schedule; C j is any time by which job j has had its work. Since W is arbitrary, this also holds for
   jobs with a choice of GPUs or of frozen layers, with W j their least GPU-slots. *)
Theorem fluid_lower_bound n G r W s a Cv C :
  0 < G -> srpt n (fun j => G * r j) W s -> fluid_feasible n G r a ->
  (forall j, j < n -> completes W (served s) j (Cv j)) ->
  (forall j, j < n -> W j <= received a (C j) j) ->
  sum Cv n <= G * sum C n.
Proof.
  intros Gp HS HF HV HC.
  set (C0 := fun j => completion W (received a) (C j) j).
  transitivity (G * sum C0 n).
  - eapply virtual_sum; eauto. intros j Hj.
    destruct (completion_completes W (received a) (C j) j); auto. intros; apply received_mono; auto.
  - apply Nat.mul_le_mono_l. apply sum_le. intros j Hj.
    destruct (completion_completes W (received a) (C j) j); auto. intros; apply received_mono; auto.
Qed.

(* Against any cluster schedule; C j is any time by which job j has had its p j slots. *)
Theorem virtual_machine_lower_bound n G r g p s x Cv C :
  0 < G ->
  srpt n (fun j => G * r j) (fun j => g j * p j) s ->
  cluster_feasible n G r g x ->
  (forall j, j < n -> completes (fun j => g j * p j) (served s) j (Cv j)) ->
  (forall j, j < n -> p j <= slots_run x (C j) j) ->
  sum Cv n <= G * sum C n.
Proof.
  intros Gp HS F HV HC. eapply fluid_lower_bound; eauto using gpu_work_fluid.
  intros j Hj. rewrite gpu_work_done. specialize (HC j Hj). nia.
Qed.

(* ---------- schedules without preemption ---------- *)

(* Job j starts at st j and runs for d j. *)
Definition running (st d : nat -> nat) : runs :=
  fun t j => (st j <=? t) && (t <? st j + d j).

Lemma running_slots st d j : slots_run (running st d) (st j + d j) j = d j.
Proof.
  unfold slots_run, running. rewrite sum_app.
  rewrite (sum_ext _ (fun _ => 0)), sum_zero.
  - rewrite (sum_ext _ (fun _ => 1)), sum_const; [lia|].
    intros i Hi. destruct (Nat.leb_spec (st j) (st j + i)); try lia.
    destruct (Nat.ltb_spec (st j + i) (st j + d j)); auto; lia.
  - intros i Hi. destruct (Nat.leb_spec (st j) i); auto; lia.
Qed.

Lemma running_spec st d t j : running st d t j = true <-> st j <= t < st j + d j.
Proof. unfold running. rewrite andb_true_iff, Nat.leb_le, Nat.ltb_lt. tauto. Qed.

Lemma slots_run_le x t j : slots_run x t j <= t.
Proof.
  unfold slots_run. transitivity (sum (fun _ => 1) t); [|rewrite sum_const; lia].
  apply sum_le. intros i _. destruct (x i j); cbn [b2n]; lia.
Qed.

(* A job never has more slots than its duration. *)
Lemma running_slots_le st d t j : slots_run (running st d) t j <= d j.
Proof.
  destruct (Nat.le_gt_cases t (st j + d j)) as [L|L].
  - rewrite <- (running_slots st d j) at 1. apply sum_mono_bound. auto.
  - unfold slots_run. replace t with (st j + d j + (t - (st j + d j))) by lia. rewrite sum_app.
    fold (slots_run (running st d) (st j + d j) j). rewrite running_slots.
    rewrite (sum_ext _ (fun _ => 0)), sum_zero; [lia|].
    intros k _. unfold running. destruct (Nat.ltb_spec (st j + d j + k) (st j + d j)); [lia|].
    rewrite andb_false_r. auto.
Qed.

(* Of instants m times as fine, the last one of each slot: who starts in a slot starts at its begin. *)
Lemma coarser_running m (st d p : nat -> nat) t j : 0 < m -> m * p j <= d j ->
  running (fun j => st j / m) p t j = true -> running st d (m * t + (m - 1)) j = true.
Proof.
  rewrite !running_spec. intros M L H.
  pose proof (Nat.mul_div_le (st j) m ltac:(lia)). pose proof (Nat.mul_succ_div_gt (st j) m ltac:(lia)). nia.
Qed.

(* No job has its slots before release + duration. *)
Lemma completion_after_release n G r g p x C j :
  cluster_feasible n G r g x -> j < n -> 0 < p j -> p j <= slots_run x (C j) j -> r j + p j <= C j.
Proof.
  intros [_ F] Hj Hp HC.
  assert (H : forall t, slots_run x t j <= t - r j).
  { induction t; [unfold slots_run; simpl; lia|].
    change (slots_run x t j + b2n (x t j) <= S t - r j).
    destruct (x t j) eqn:E; cbn [b2n]; [specialize (F t j Hj E)|]; lia. }
  specialize (H (C j)). lia.
Qed.
