(* The guarantee of virtual order, for every job and for the sum of completion times.

   The virtual machine runs SRPT on the (predicted) work of the jobs, G steps to a slot; job j becomes due at due j, not
   before its virtual completion. All times of the real schedule are in steps. Real numbers of the text are ratios here:
     rho   = rn/rd   bounds the real duration over the shortest one:  rd * d j <= rn * (G * p j);
     eta_u = un/ud   bounds under-prediction:                         ud * p j <= un * phat j;
     eta_o = on/od   bounds over-prediction, at least 1:              od * phat j <= on * p j;
     kappa = kn/kd and delta bound how late a job enters:             due j <= Cv j + kappa * G * p j + delta.
   With theta = rho * G / (B - E) and w j = g j * p j / G, job by job

     completion j <= (1 + theta) * due j - theta * w j + rho * p j                                (job_guarantee)

   and in the sum, against every cluster schedule,

     sum of completions <= ((1 + theta * eta_u) * (eta_o + kappa) + rho * max(0, 1 - gmin / (B - E))) * sum C
                           + n * (1 + theta * eta_u) * delta                                      (virtual_order_ratio),

   each cleared of fractions. The rest of the file are special cases. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation Predictions Saturation VirtualOrder StrictList.

(* ---------- one job, in terms of GPU-time ---------- *)

Section Area.
Variables (n G B E : nat) (R W key due g d start Cv : nat -> nat) (s : machine) (blocked : placement_rule).
Variables (how : nat -> manner) (an ad : nat).
Hypothesis key_inj : forall i j, i < n -> j < n -> key i = key j -> i = j.
Hypothesis key_due : forall i j, i < n -> j < n -> key j < key i -> due j <= due i.
Hypothesis blocked_mono : monotone n blocked.
Hypothesis saturated : saturates n g blocked B.
Hypothesis rules : virtual_order n key due d start blocked g E how.
Hypothesis HS : srpt n R W s.
Hypothesis HV : forall j, j < n -> completes W (served s) j (Cv j).
Hypothesis due_late : forall j, j < n -> Cv j <= due j.
(* real GPU-time is at most an/ad times the work on the virtual machine *)
Hypothesis area : forall j, j < n -> ad * (g j * d j) <= an * (G * W j).

(* When job i is due, the virtual machine has done its work and that of all jobs ahead. *)
Lemma virtual_work_ahead i : i < n ->
  sum (fun j => if key j <? key i then W j else 0) n + W i <= due i.
Proof.
  intros Hi. etransitivity; [|apply (total_work n R W s (srpt_diligent _ _ _ _ HS) (due i))].
  assert (D : forall j, j < n -> due j <= due i -> W j <= served s (due i) j).
  { intros j Hj L. destruct (HV j Hj) as [A _]. etransitivity; [exact A|]. apply served_mono.
    specialize (due_late j Hj). lia. }
  transitivity (sum (fun j => (if key j <? key i then W j else 0) + if j =? i then W j else 0) n).
  - rewrite sum_plus, sum_single. destruct (Nat.ltb_spec i n); lia.
  - apply sum_le. intros j Hj. specialize (D j Hj).
    destruct (Nat.eqb_spec j i) as [->|]; [rewrite Nat.ltb_irrefl; lia|].
    destruct (Nat.ltb_spec (key j) (key i)) as [K|]; [|lia]. specialize (key_due i j Hi Hj K). lia.
Qed.

Theorem job_guarantee_area i : i < n ->
  ad * (B - E) * start i + an * G * W i <= (ad * (B - E) + an * G) * due i.
Proof.
  intros Hi.
  pose proof (waiting_bound n key due d start blocked key_inj key_due blocked_mono g B E how saturated rules i Hi) as Wt.
  pose proof (virtual_work_ahead i Hi) as V.
  assert (A : ad * work_ahead n key d g i <= an * G * sum (fun j => if key j <? key i then W j else 0) n).
  { unfold work_ahead. rewrite <- !sum_scal. apply sum_le. intros j Hj.
    destruct (key j <? key i); [|lia]. specialize (area j Hj). lia. }
  pose proof (Nat.mul_le_mono_l _ _ ad Wt) as Wt'.
  pose proof (Nat.mul_le_mono_l _ _ (an * G) V) as V'.
  assert (S1 : start i <= due i + (start i - due i)) by lia.
  pose proof (Nat.mul_le_mono_l _ _ (ad * (B - E)) S1) as S2.
  lia.
Qed.
End Area.

(* ---------- rigid jobs with predictions and late entry ---------- *)

Section Rigid.
Variables (n G B E : nat) (r g p phat d key due start Cv : nat -> nat) (s : machine) (blocked : placement_rule).
Variables (how : nat -> manner) (rn rd un ud : nat).
Hypothesis rho : forall j, j < n -> rd * d j <= rn * (G * p j).
Hypothesis under : forall j, j < n -> ud * p j <= un * phat j.

Lemma predicted_area j : j < n -> rd * ud * (g j * d j) <= rn * un * (G * (g j * phat j)).
Proof.
  intros Hj. specialize (rho j Hj). specialize (under j Hj).
  transitivity (g j * (ud * (rd * d j))); [lia|].
  transitivity (g j * (ud * (rn * (G * p j)))); [apply Nat.mul_le_mono_l, Nat.mul_le_mono_l, rho|].
  transitivity (g j * (rn * (G * (ud * p j)))); [lia|].
  transitivity (g j * (rn * (G * (un * phat j)))); [|lia].
  apply Nat.mul_le_mono_l, Nat.mul_le_mono_l, Nat.mul_le_mono_l, under.
Qed.

Let m := B - E.
Hypothesis key_inj : forall i j, i < n -> j < n -> key i = key j -> i = j.
Hypothesis key_due : forall i j, i < n -> j < n -> key j < key i -> due j <= due i.
Hypothesis blocked_mono : monotone n blocked.
Hypothesis saturated : saturates n g blocked B.
Hypothesis rules : virtual_order n key due d start blocked g E how.
Hypothesis HS : srpt n (fun j => G * r j) (fun j => g j * phat j) s.
Hypothesis HV : forall j, j < n -> completes (fun j => g j * phat j) (served s) j (Cv j).
Hypothesis due_late : forall j, j < n -> Cv j <= due j.

(* completion i <= (1 + theta * eta_u) * due i - theta * eta_u * what i + d i, with what i = g i * phat i / G *)
Theorem predicted_job_guarantee i : i < n ->
  rd * ud * m * (start i + d i) + rn * un * G * (g i * phat i)
  <= (rd * ud * m + rn * un * G) * due i + rd * ud * m * d i.
Proof.
  intros Hi.
  pose proof (job_guarantee_area n G B E _ _ key due g d start Cv s blocked how (rn * un) (rd * ud) key_inj key_due
    blocked_mono saturated rules HS HV due_late predicted_area i Hi) as J.
  cbn beta in J. fold m in J. lia.
Qed.

Variables (gmin on od kn kd delta : nat).
Hypothesis G_pos : 0 < G.
Hypothesis g_min : forall j, j < n -> gmin <= g j.
Hypothesis over : forall j, j < n -> od * phat j <= on * p j.
Hypothesis od_pos : 0 < od.
Hypothesis on_od : od <= on.
Hypothesis entry : forall j, j < n -> kd * due j <= kd * Cv j + kn * (G * p j) + kd * delta.

Theorem prediction_guarantee x C :
  cluster_feasible n G r g x -> (forall j, j < n -> p j <= slots_run x (C j) j) ->
  od * kd * (rd * ud * m) * sum (fun j => start j + d j) n <=
  ((rd * ud * m + rn * un * G) * (kd * on + od * kn) + od * kd * (rn * ud * (m - gmin))) * (G * sum C n)
  + (rd * ud * m + rn * un * G) * (od * kd * (n * delta)).
Proof.
  intros HX HC.
  pose proof (predicted_virtual_completions n G r g p phat on od s x Cv C G_pos od_pos on_od over HS HV HX HC) as VS.
  assert (PC : sum p n <= sum C n).
  { apply sum_le. intros j Hj. etransitivity; [apply HC; auto|]. apply slots_run_le. }
  set (A := rd * ud * m) in *. set (T := rn * un * G) in *.
  (* job by job, with duration and share of the work set off *)
  assert (J : A * sum (fun j => start j + d j) n <= (A + T) * sum due n + rn * ud * (m - gmin) * (G * sum p n)).
  { rewrite <- !sum_scal, <- sum_plus. apply sum_le. intros i Hi.
    pose proof (predicted_job_guarantee i Hi) as J. fold A T in J.
    assert (D : A * d i <= rn * ud * m * (G * p i)).
    { unfold A. specialize (rho i Hi). pose proof (Nat.mul_le_mono_l _ _ (ud * m) rho). lia. }
    assert (F : rn * ud * gmin * (G * p i) <= T * (g i * phat i)).
    { unfold T. specialize (g_min i Hi). specialize (under i Hi).
      transitivity (rn * G * (gmin * (ud * p i))); [lia|].
      transitivity (rn * G * (g i * (un * phat i))); [|lia].
      apply Nat.mul_le_mono_l, Nat.mul_le_mono; auto. }
    assert (M : m <= (m - gmin) + gmin) by lia.
    pose proof (Nat.mul_le_mono_l _ _ (rn * ud * (G * p i)) M). lia. }
  assert (U : kd * sum due n <= kd * sum Cv n + kn * (G * sum p n) + kd * (n * delta)).
  { rewrite <- (sum_const delta n), <- !sum_scal, <- !sum_plus. apply sum_le. intros j Hj. apply entry; auto. }
  set (Cs := G * sum C n) in *. set (Ps := G * sum p n) in *.
  assert (PC' : Ps <= Cs) by (apply Nat.mul_le_mono_l; auto).
  assert (U' : od * kd * sum due n <= (kd * on + od * kn) * Cs + od * kd * (n * delta)).
  { pose proof (Nat.mul_le_mono_l _ _ od U) as U1. pose proof (Nat.mul_le_mono_l _ _ kd VS) as V1.
    pose proof (Nat.mul_le_mono_l _ _ (od * kn) PC') as P1. unfold Cs in *. lia. }
  pose proof (Nat.mul_le_mono_l _ _ (od * kd) J) as J1.
  pose proof (Nat.mul_le_mono_l _ _ (A + T) U') as U1.
  pose proof (Nat.mul_le_mono_l _ _ (od * kd * (rn * ud * (m - gmin))) PC') as P1. lia.
Qed.
End Rigid.

(* ---------- exact sizes ---------- *)

Section Exact.
Variables (n G B E : nat) (r g p d key due start Cv : nat -> nat) (s : machine) (blocked : placement_rule).
Variables (how : nat -> manner) (rn rd : nat).
Hypothesis key_inj : forall i j, i < n -> j < n -> key i = key j -> i = j.
Hypothesis key_due : forall i j, i < n -> j < n -> key j < key i -> due j <= due i.
Hypothesis blocked_mono : monotone n blocked.
Hypothesis saturated : saturates n g blocked B.
Hypothesis rules : virtual_order n key due d start blocked g E how.
Hypothesis HS : srpt n (fun j => G * r j) (fun j => g j * p j) s.
Hypothesis HV : forall j, j < n -> completes (fun j => g j * p j) (served s) j (Cv j).
Hypothesis due_late : forall j, j < n -> Cv j <= due j.
Hypothesis rho : forall j, j < n -> rd * d j <= rn * (G * p j).

(* completion i <= (1 + theta) * due i - theta * w i + rho * p i *)
Theorem job_guarantee i : i < n ->
  rd * (B - E) * (start i + d i) + rn * G * (g i * p i)
  <= (rd * (B - E) + rn * G) * due i + rn * (B - E) * (G * p i).
Proof.
  intros Hi.
  pose proof (predicted_job_guarantee n G B E r g p p d key due start Cv s blocked how rn rd 1 1 rho ltac:(auto)
    key_inj key_due blocked_mono saturated rules HS HV due_late i Hi) as J.
  cbv zeta in J. rewrite !Nat.mul_1_r in J.
  pose proof (Nat.mul_le_mono_l _ _ (B - E) (rho i Hi)) as D. lia.
Qed.

Variable gmin : nat.
Hypothesis G_pos : 0 < G.
Hypothesis g_min : forall j, j < n -> gmin <= g j.

(* sum of completions <= (1 + theta + rho * max(0, 1 - gmin / (B - E))) * sum C, when jobs are due at their virtual
   completion *)
Theorem virtual_order_ratio x C :
  (forall j, j < n -> due j = Cv j) ->
  cluster_feasible n G r g x -> (forall j, j < n -> p j <= slots_run x (C j) j) ->
  rd * (B - E) * sum (fun j => start j + d j) n
  <= (rd * (B - E) + rn * G + rn * (B - E - gmin)) * (G * sum C n).
Proof.
  intros D HX HC.
  pose proof (prediction_guarantee n G B E r g p p d key due start Cv s blocked how rn rd 1 1 rho ltac:(auto)
    key_inj key_due blocked_mono saturated rules HS HV due_late gmin 1 1 0 1 0 G_pos g_min ltac:(auto) Nat.lt_0_1
    ltac:(auto)) as H.
  specialize (H (fun j Hj => ltac:(rewrite (D j Hj); lia)) x C HX HC). cbv zeta in H.
  rewrite !Nat.mul_1_r, !Nat.mul_1_l, !Nat.mul_0_r, !Nat.add_0_r in H. lia.
Qed.

(* A job may become due later than its virtual completion, by kappa = kn/kd times its shortest duration:
   sum of completions <= ((1 + theta) * (1 + kappa) + rho * max(0, 1 - gmin / (B - E))) * sum C *)
Theorem late_entry_ratio kn kd x C :
  (forall j, j < n -> kd * due j <= kd * Cv j + kn * (G * p j)) ->
  cluster_feasible n G r g x -> (forall j, j < n -> p j <= slots_run x (C j) j) ->
  kd * (rd * (B - E)) * sum (fun j => start j + d j) n
  <= ((rd * (B - E) + rn * G) * (kd + kn) + kd * (rn * (B - E - gmin))) * (G * sum C n).
Proof.
  intros D HX HC.
  pose proof (prediction_guarantee n G B E r g p p d key due start Cv s blocked how rn rd 1 1 rho ltac:(auto)
    key_inj key_due blocked_mono saturated rules HS HV due_late gmin 1 1 kn kd 0 G_pos g_min ltac:(auto) Nat.lt_0_1
    ltac:(auto)) as H.
  specialize (H (fun j Hj => ltac:(specialize (D j Hj); lia)) x C HX HC). cbv zeta in H.
  rewrite !Nat.mul_1_r, !Nat.mul_1_l, !Nat.mul_0_r, !Nat.add_0_r in H. lia.
Qed.
End Exact.

(* ---------- the strict list, on a pool and on servers ---------- *)

Section StrictList.
Variables (n G gmax gmin : nat) (r g p d key start Cv : nat -> nat) (s : machine) (rn rd : nat).
Hypothesis G_pos : 0 < G.
Hypothesis g_range : forall j, j < n -> gmin <= g j <= gmax.
Hypothesis key_inj : forall i j, i < n -> j < n -> key i = key j -> i = j.
Hypothesis key_virtual : forall i j, i < n -> j < n -> key j < key i -> Cv j <= Cv i.
Hypothesis HS : srpt n (fun j => G * r j) (fun j => g j * p j) s.
Hypothesis HV : forall j, j < n -> completes (fun j => g j * p j) (served s) j (Cv j).
Hypothesis rho : forall j, j < n -> rd * d j <= rn * (G * p j).

(* On a pool: B = G - gmax + 1. *)
Theorem strict_list_guarantee :
  let B := G - gmax + 1 in
  gmax <= G -> strict_list n key Cv d (pool_blocked n G g) start ->
  (forall i, i < n ->
     rd * B * (start i + d i) + rn * G * (g i * p i) <= (rd * B + rn * G) * Cv i + rn * B * (G * p i)) /\
  (forall x C, cluster_feasible n G r g x -> (forall j, j < n -> p j <= slots_run x (C j) j) ->
     rd * B * sum (fun j => start j + d j) n <= (rd * B + rn * G + rn * (B - gmin)) * (G * sum C n)).
Proof.
  intros B L HL.
  pose proof (strict_list_keeps_rules n key Cv g d key_inj _ start (pool_monotone n G g) HL) as V.
  pose proof (pool_saturation n G g gmax (fun j Hj => proj2 (g_range j Hj)) L) as Sat. fold B in Sat.
  split.
  - intros i Hi.
    pose proof (job_guarantee n G B 0 r g p d key Cv start Cv s _ _ rn rd key_inj key_virtual (pool_monotone n G g)
      Sat V HS HV ltac:(auto with arith) rho i Hi) as H.
    rewrite !Nat.sub_0_r in H. exact H.
  - intros x C HX HC.
    pose proof (virtual_order_ratio n G B 0 r g p d key Cv start Cv s _ _ rn rd key_inj key_virtual
      (pool_monotone n G g) Sat V HS HV ltac:(auto with arith) rho gmin G_pos
      (fun j Hj => proj1 (g_range j Hj)) x C ltac:(auto) HX HC) as H.
    rewrite !Nat.sub_0_r in H. exact H.
Qed.

(* On M servers of c GPUs, every job on one server: B = M * (c - gmax + 1). *)
Theorem strict_list_guarantee_on_servers M c server :
  let B := M * (c - gmax + 1) in
  gmax <= c -> strict_list n key Cv d (confined_blocked n M c g server) start ->
  (forall i, i < n ->
     rd * B * (start i + d i) + rn * G * (g i * p i) <= (rd * B + rn * G) * Cv i + rn * B * (G * p i)) /\
  (forall x C, cluster_feasible n G r g x -> (forall j, j < n -> p j <= slots_run x (C j) j) ->
     rd * B * sum (fun j => start j + d j) n <= (rd * B + rn * G + rn * (B - gmin)) * (G * sum C n)).
Proof.
  intros B L HL.
  pose proof (strict_list_keeps_rules n key Cv g d key_inj _ start (confined_monotone n M c g server) HL) as V.
  pose proof (confined_saturation n M c g server gmax (fun j Hj => proj2 (g_range j Hj)) L) as Sat. fold B in Sat.
  split.
  - intros i Hi.
    pose proof (job_guarantee n G B 0 r g p d key Cv start Cv s _ _ rn rd key_inj key_virtual
      (confined_monotone n M c g server) Sat V HS HV ltac:(auto with arith) rho i Hi) as H.
    rewrite !Nat.sub_0_r in H. exact H.
  - intros x C HX HC.
    pose proof (virtual_order_ratio n G B 0 r g p d key Cv start Cv s _ _ rn rd key_inj key_virtual
      (confined_monotone n M c g server) Sat V HS HV ltac:(auto with arith) rho gmin G_pos
      (fun j Hj => proj1 (g_range j Hj)) x C ltac:(auto) HX HC) as H.
    rewrite !Nat.sub_0_r in H. exact H.
Qed.
End StrictList.
