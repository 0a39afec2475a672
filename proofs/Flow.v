(* The strict list looked at locally, and flow time with faster GPUs.

   The strict list is guarded with Gamma = 0 (Guard.v), which bounds a job's start by its virtual completion up to terms of
   single jobs: start i <= max(1, theta) * C^V i + theta * (wmax - w i) + (G/B) * dmax (strict_list_local_guarantee).
   If theta <= 1 (GPUs fast enough: rho is real over shortest duration, speed included) only an additive loss is left, and
   the sum of flow times is at most (1 + rho) times the optimum plus (1 + gmax/G) * pmax a job (flow_with_speed). *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation Saturation VirtualOrder StrictList Guard.

Section Local.
Variables (n G B : nat) (R W key d g start Cv : nat -> nat) (s : machine) (blocked : placement_rule).
Variables (an ad dmax wmax : nat).
Hypothesis key_inj : forall i j, i < n -> j < n -> key i = key j -> i = j.
Hypothesis key_virtual : forall i j, i < n -> j < n -> key j < key i -> Cv j <= Cv i.
Hypothesis blocked_mono : monotone n blocked.
Hypothesis saturated : saturates n g blocked B.
Hypothesis list : strict_list n key Cv d blocked start.
Hypothesis capacity : forall t, busy n g (running start d t) <= G.
Hypothesis HS : srpt n R W s.
Hypothesis HV : forall j, j < n -> completes W (served s) j (Cv j).
Hypothesis area : forall j, j < n -> ad * (g j * d j) <= an * (G * W j).
Hypothesis longest : forall j, j < n -> d j <= dmax.
Hypothesis most_work : forall j, j < n -> W j <= wmax.

Theorem strict_list_local_guarantee i : i < n ->
  ad * B * start i + an * G * W i <= Nat.max (ad * B) (an * G) * Cv i + an * G * wmax + ad * G * dmax.
Proof.
  intros Hi.
  destruct (guard_up_since_exists n Cv start (fun _ => 0) (start i)) as [U HU].
  pose proof (strict_list_is_guarded n G key Cv g d start blocked key_inj blocked_mono list capacity) as Gd.
  pose proof (guard_guarantee n G B 0 key Cv g d start blocked (fun _ => 0) (fun _ => InOrder) key_inj key_virtual
    blocked_mono saturated ltac:(auto) Gd i U Hi HU R W Cv s an ad 0 dmax wmax HS HV ltac:(intros; lia) area
    ltac:(auto) ltac:(auto)) as H.
  cbv beta in H. rewrite Nat.add_0_r, Nat.sub_0_r in H.
  assert (X : (an * G - ad * B) * (Cv i - U) <= (an * G - ad * B) * Cv i) by (apply Nat.mul_le_mono_l; lia).
  assert (Y : Nat.max (ad * B) (an * G) * Cv i = ad * B * Cv i + (an * G - ad * B) * Cv i).
  { rewrite <- Nat.mul_add_distr_r. f_equal. lia. }
  rewrite Y. rewrite Nat.add_0_l in H. lia.
Qed.
End Local.

Section Flow.
Variables (n G B gmax pmax : nat) (r g p key d start Cv : nat -> nat) (s : machine) (blocked : placement_rule).
Variables (rn rd : nat).
Hypothesis G_pos : 0 < G.
Hypothesis B_pos : 0 < B.
Hypothesis g_range : forall j, j < n -> 0 < g j <= gmax.
Hypothesis p_range : forall j, j < n -> 0 < p j <= pmax.
Hypothesis key_inj : forall i j, i < n -> j < n -> key i = key j -> i = j.
Hypothesis key_virtual : forall i j, i < n -> j < n -> key j < key i -> Cv j <= Cv i.
Hypothesis blocked_mono : monotone n blocked.
Hypothesis saturated : saturates n g blocked B.
Hypothesis list : strict_list n key Cv d blocked start.
Hypothesis capacity : forall t, busy n g (running start d t) <= G.
Hypothesis HS : srpt n (fun j => G * r j) (fun j => g j * p j) s.
Hypothesis HV : forall j, j < n -> completes (fun j => g j * p j) (served s) j (Cv j).
(* rn/rd is real duration over shortest duration, divided by the speed of the GPUs *)
Hypothesis rd_pos : 0 < rd.
Hypothesis rho : forall j, j < n -> rd * d j <= rn * (G * p j).
Hypothesis fast : rn * G <= rd * B.

(* start i <= C^V i + (1 + gmax / G) * pmax *)
Lemma start_with_speed i : i < n -> start i <= Cv i + (G + gmax) * pmax.
Proof.
  intros Hi. set (dmax := rn * (G * pmax) / rd).
  assert (D : forall j, j < n -> d j <= dmax).
  { intros j Hj. apply Nat.div_le_lower_bound; [lia|]. etransitivity; [apply rho; auto|].
    apply Nat.mul_le_mono_l, Nat.mul_le_mono_l, p_range. auto. }
  pose proof (strict_list_local_guarantee n G B _ _ key d g start Cv s blocked rn rd dmax (gmax * pmax)
    key_inj key_virtual blocked_mono saturated list capacity HS HV) as H.
  assert (A : forall j, j < n -> rd * (g j * d j) <= rn * (G * (g j * p j))).
  { intros j Hj. pose proof (Nat.mul_le_mono_l _ _ (g j) (rho j Hj)). lia. }
  specialize (H A D).
  specialize (H (fun j Hj => Nat.mul_le_mono _ _ _ _ (proj2 (g_range j Hj)) (proj2 (p_range j Hj))) i Hi).
  rewrite Nat.max_l in H by lia.
  pose proof (Nat.mul_div_le (rn * (G * pmax)) rd ltac:(lia)) as M. fold dmax in M.
  pose proof (Nat.mul_le_mono_l _ _ G M) as M1.
  pose proof (Nat.mul_le_mono_r _ _ (G * pmax) fast) as M2.
  pose proof (Nat.mul_le_mono_r _ _ (gmax * pmax) fast) as M3.
  apply (Nat.mul_le_mono_pos_l _ _ (rd * B)); [apply Nat.mul_pos_pos; auto|]. lia.
Qed.

(* sum of flow times <= (1 + rho) * (sum of flow times of any schedule) + n * (1 + gmax / G) * pmax *)
Theorem flow_with_speed x C :
  cluster_feasible n G r g x -> (forall j, j < n -> p j <= slots_run x (C j) j) ->
  rd * sum (fun j => start j + d j - G * r j) n
  <= (rd + rn) * (G * sum (fun j => C j - r j) n) + rd * (n * ((G + gmax) * pmax)).
Proof.
  intros HX HC.
  assert (LC : forall j, j < n -> r j + p j <= C j).
  { intros j Hj. apply (completion_after_release n G r g p x); auto. apply p_range. auto. }
  assert (LV : forall j, j < n -> G * r j <= Cv j <= start j).
  { intros j Hj. split; [|apply (list j Hj)]. apply (completes_after_release n (fun j => G * r j) _ s j (Cv j) HS); auto.
    specialize (g_range j Hj). specialize (p_range j Hj). nia. }
  pose proof (virtual_machine_lower_bound n G r g p s x Cv C G_pos HS HX HV HC) as VB.
  assert (F : sum (fun j => start j + d j - G * r j) n + G * sum r n
              <= sum Cv n + n * ((G + gmax) * pmax) + sum d n).
  { rewrite <- (sum_const ((G + gmax) * pmax) n), <- sum_scal, <- !sum_plus. apply sum_le. intros j Hj.
    pose proof (start_with_speed j Hj). specialize (LV j Hj). lia. }
  assert (O : sum (fun j => C j - r j) n + sum r n = sum C n).
  { rewrite <- sum_plus. apply sum_ext. intros j Hj. specialize (LC j Hj). lia. }
  assert (P : sum p n <= sum (fun j => C j - r j) n).
  { apply sum_le. intros j Hj. specialize (LC j Hj). lia. }
  assert (D : rd * sum d n <= rn * (G * sum p n)).
  { rewrite <- !sum_scal. apply sum_le. auto. }
  pose proof (Nat.mul_le_mono_l _ _ (rn * G) P) as P'.
  rewrite <- O in VB.
  set (X := sum (fun j => start j + d j - G * r j) n) in *. set (Y := sum (fun j => C j - r j) n) in *.
  assert (Z : X <= G * Y + n * ((G + gmax) * pmax) + sum d n) by lia.
  pose proof (Nat.mul_le_mono_l _ _ rd Z) as Z'. lia.
Qed.
End Flow.
