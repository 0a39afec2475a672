(* Freezing layers.

   Freezing that only shortens jobs keeps the guarantee against the optimum without freezing: the proofs use durations only
   from above (freezing_keeps_guarantee). The rules must be kept with the durations that jobs really have; in particular a
   backfill must end before the head could start beside the shortened jobs.

   If the optimum may freeze too, or choose among numbers of GPUs, the virtual machine is given the least GPU-time W j of the
   choices that job j admits; pi j is the least duration. If the choice made for job j costs at most an/ad times the
   GPU-time and lasts at most pn/pd times the duration, the ratio is 1 + (an/ad) * G / (B - E) + pn/pd
   (choices_guarantee). *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation Saturation VirtualOrder Guarantee.

Section Freezing.
Variables (n G B E : nat) (r g p d unfrozen key due start Cv : nat -> nat) (s : machine) (blocked : placement_rule).
Variables (how : nat -> manner) (rn rd gmin : nat).
Hypothesis key_inj : forall i j, i < n -> j < n -> key i = key j -> i = j.
Hypothesis key_due : forall i j, i < n -> j < n -> key j < key i -> due j <= due i.
Hypothesis blocked_mono : monotone n blocked.
Hypothesis saturated : saturates n g blocked B.
Hypothesis rules : virtual_order n key due d start blocked g E how.
Hypothesis HS : srpt n (fun j => G * r j) (fun j => g j * p j) s.
Hypothesis HV : forall j, j < n -> completes (fun j => g j * p j) (served s) j (Cv j).
Hypothesis due_late : forall j, j < n -> Cv j <= due j.
(* the job would last unfrozen j, and freezing lets it last d j *)
Hypothesis shortens : forall j, j < n -> d j <= unfrozen j.
Hypothesis rho : forall j, j < n -> rd * unfrozen j <= rn * (G * p j).

Theorem freezing_keeps_guarantee :
  (forall i, i < n ->
     rd * (B - E) * (start i + d i) + rn * G * (g i * p i)
     <= (rd * (B - E) + rn * G) * due i + rn * (B - E) * (G * p i)) /\
  (0 < G -> (forall j, j < n -> gmin <= g j) -> (forall j, j < n -> due j = Cv j) ->
   forall x C, cluster_feasible n G r g x -> (forall j, j < n -> p j <= slots_run x (C j) j) ->
     rd * (B - E) * sum (fun j => start j + d j) n
     <= (rd * (B - E) + rn * G + rn * (B - E - gmin)) * (G * sum C n)).
Proof.
  assert (rho' : forall j, j < n -> rd * d j <= rn * (G * p j)).
  { intros j Hj. etransitivity; [apply Nat.mul_le_mono_l, shortens; auto|auto]. }
  split; intros.
  - apply (job_guarantee n G B E r g p d key due start Cv s blocked how); auto.
  - apply (virtual_order_ratio n G B E r g p d key due start Cv s blocked how rn rd) with (x := x); auto.
Qed.
End Freezing.

Section Choices.
Variables (n G B E : nat) (r W pi key due g d start Cv : nat -> nat) (s : machine) (blocked : placement_rule).
Variables (how : nat -> manner) (an ad pn pd : nat).
Hypothesis G_pos : 0 < G.
Hypothesis key_inj : forall i j, i < n -> j < n -> key i = key j -> i = j.
Hypothesis key_virtual : forall i j, i < n -> j < n -> key j < key i -> Cv j <= Cv i.
Hypothesis blocked_mono : monotone n blocked.
Hypothesis saturated : saturates n g blocked B.
Hypothesis rules : virtual_order n key Cv d start blocked g E how.
Hypothesis HS : srpt n (fun j => G * r j) W s.
Hypothesis HV : forall j, j < n -> completes W (served s) j (Cv j).
Hypothesis area : forall j, j < n -> ad * (g j * d j) <= an * (G * W j).
Hypothesis length : forall j, j < n -> pd * d j <= pn * (G * pi j).

(* The rival is any fluid schedule in which job j has its least GPU-time by C j, not before its least duration. *)
Theorem choices_guarantee a C :
  fluid_feasible n G r a -> (forall j, j < n -> W j <= received a (C j) j /\ pi j <= C j) ->
  ad * (B - E) * pd * sum (fun j => start j + d j) n
  <= (ad * (B - E) * pd + an * G * pd + ad * (B - E) * pn) * (G * sum C n).
Proof.
  intros HA HC.
  pose proof (fluid_lower_bound n G r W s a Cv C G_pos HS HA HV (fun j Hj => proj1 (HC j Hj))) as VB.
  assert (PC : sum pi n <= sum C n) by (apply sum_le; intros j Hj; apply HC; auto).
  set (A := ad * (B - E)) in *. set (T := an * G) in *.
  assert (J : A * pd * sum (fun j => start j + d j) n <= (A + T) * pd * sum Cv n + A * pn * (G * sum pi n)).
  { rewrite <- !sum_scal, <- sum_plus. apply sum_le. intros i Hi.
    pose proof (job_guarantee_area n G B E _ W key Cv g d start Cv s blocked how an ad key_inj key_virtual blocked_mono
      saturated rules HS HV ltac:(auto) area i Hi) as Q. fold A T in Q.
    pose proof (Nat.mul_le_mono_l _ _ A (length i Hi)) as L.
    assert (Q' : A * start i <= (A + T) * Cv i) by lia.
    pose proof (Nat.mul_le_mono_l _ _ pd Q'). lia. }
  pose proof (Nat.mul_le_mono_l _ _ ((A + T) * pd) VB) as V1.
  pose proof (Nat.mul_le_mono_l _ _ (A * pn * G) PC) as P1. lia.
Qed.
End Choices.
