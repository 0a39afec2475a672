(* The theorems are not empty: for every instance there is a schedule that they speak of.

   online_schedule_exists: on a pool, with any predictions, a strict list in virtual order exists, holds no more GPUs than
   there are, starts no job before its release, and has the ratio. online_schedule_on_servers_exists: the same on servers,
   every job on one of them. backfill_and_budget_example: a schedule with a backfill and a start on the budget. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation Saturation VirtualOrder StrictList Guarantee.

Lemma pair_key n a b i j : i < n -> j < n ->
  (a * n + i = b * n + j -> i = j) /\ (b * n + j < a * n + i -> b <= a).
Proof.
  intros Hi Hj. destruct (Nat.lt_trichotomy a b) as [L|[L|L]].
  - assert (a * n + n <= b * n) by nia. split; lia.
  - subst. split; lia.
  - assert (b * n + n <= a * n) by nia. split; lia.
Qed.

(* A virtual machine, its completions, and an order of them. *)
Lemma virtual_completions_exist n R W : exists s Cv key,
  srpt n R W s /\ (forall j, j < n -> completes W (served s) j (Cv j)) /\
  (forall i j, i < n -> j < n -> key i = key j -> i = j) /\
  (forall i j, i < n -> j < n -> key j < key i -> Cv j <= Cv i).
Proof.
  pose proof (srpt_machine_keeps_rule n R W) as HS.
  destruct (srpt_finishes n R W _ HS) as [T HT].
  exists (srpt_machine n R W), (completion W (served (srpt_machine n R W)) T).
  exists (fun j => completion W (served (srpt_machine n R W)) T j * n + j). split; [exact HS|]. split.
  - intros j Hj. apply completion_completes; auto. intros; apply served_mono; auto.
  - split; intros i j Hi Hj; apply pair_key; auto.
Qed.

Section Exist.
Variables (n G gmax gmin : nat) (r g p phat d : nat -> nat) (rn rd un ud on od : nat).
Hypothesis G_pos : 0 < G.
Hypothesis g_range : forall j, j < n -> 0 < g j /\ gmin <= g j <= gmax.
Hypothesis phat_pos : forall j, j < n -> 0 < phat j.
Hypothesis rho : forall j, j < n -> rd * d j <= rn * (G * p j).
Hypothesis under : forall j, j < n -> ud * p j <= un * phat j.
Hypothesis over : forall j, j < n -> od * phat j <= on * p j.
Hypothesis od_pos : 0 < od.
Hypothesis on_od : od <= on.

Let ratio (B : nat) (start : nat -> nat) : Prop :=
  forall x C, cluster_feasible n G r g x -> (forall j, j < n -> p j <= slots_run x (C j) j) ->
    od * (rd * ud * B) * sum (fun j => start j + d j) n
    <= ((rd * ud * B + rn * un * G) * on + od * (rn * ud * (B - gmin))) * (G * sum C n).

Lemma ratio_of_list B s Cv key start blocked :
  srpt n (fun j => G * r j) (fun j => g j * phat j) s ->
  (forall j, j < n -> completes (fun j => g j * phat j) (served s) j (Cv j)) ->
  (forall i j, i < n -> j < n -> key i = key j -> i = j) ->
  (forall i j, i < n -> j < n -> key j < key i -> Cv j <= Cv i) ->
  monotone n blocked -> saturates n g blocked B -> strict_list n key Cv d blocked start ->
  (forall j, j < n -> G * r j <= start j) /\ ratio B start.
Proof.
  intros HS HV ki kV Mono Sat L. split.
  - intros j Hj. destruct (L j Hj) as [[D _] _]. etransitivity; [|exact D].
    apply (completes_after_release n _ _ s j (Cv j) HS); auto.
    destruct (g_range j Hj). specialize (phat_pos j Hj). nia.
  - intros x C HX HC.
    pose proof (prediction_guarantee n G B 0 r g p phat d key Cv start Cv s blocked (fun _ => InOrder) rn rd un ud rho under
      ki kV Mono Sat (strict_list_keeps_rules n key Cv g d ki blocked start Mono L) HS HV ltac:(auto) gmin on od 0 1 0
      G_pos ltac:(intros; apply g_range; auto) over od_pos on_od ltac:(intros; lia) x C HX HC) as H.
    cbv zeta in H. rewrite Nat.sub_0_r, !Nat.mul_1_r, !Nat.mul_1_l, !Nat.mul_0_r, !Nat.add_0_r in H. exact H.
Qed.

Theorem online_schedule_exists : gmax <= G ->
  exists start, (forall j, j < n -> G * r j <= start j) /\
    (forall t, busy n g (running start d t) <= G) /\ ratio (G - gmax + 1) start.
Proof.
  intros L. destruct (virtual_completions_exist n (fun j => G * r j) (fun j => g j * phat j))
    as [s [Cv [key [HS [HV [ki kV]]]]]].
  destruct (strict_list_exists n key Cv g d ki G) as [start HL]; [intros j Hj; destruct (g_range j Hj); lia|].
  destruct (ratio_of_list (G - gmax + 1) s Cv key start _ HS HV ki kV (pool_monotone n G g)
    (pool_saturation n G g gmax (fun j Hj => proj2 (proj2 (g_range j Hj))) L) HL) as [A Q].
  exists start. split; [exact A|]. split; [|exact Q]. apply (strict_list_fits_pool n key Cv); auto.
Qed.

Theorem online_schedule_on_servers_exists M c : 0 < M -> G = M * c -> gmax <= c ->
  exists server start, (forall j, j < n -> G * r j <= start j) /\ (forall j, j < n -> server j < M) /\
    (forall t q, used_on n g server (running start d t) q <= c) /\ ratio (M * (c - gmax + 1)) start.
Proof.
  intros Mp _ L. destruct (virtual_completions_exist n (fun j => G * r j) (fun j => g j * phat j))
    as [s [Cv [key [HS [HV [ki kV]]]]]].
  destruct (strict_list_on_servers_exists n key Cv g d ki M c Mp) as [server [start [HL [Room V]]]].
  { intros j Hj. destruct (g_range j Hj). lia. }
  destruct (ratio_of_list (M * (c - gmax + 1)) s Cv key start _ HS HV ki kV (confined_monotone n M c g server)
    (confined_saturation n M c g server gmax (fun j Hj => proj2 (proj2 (g_range j Hj))) L) HL) as [A Q].
  exists server, start. split; [exact A|]. split; [exact V|]. split; [|exact Q].
  apply (strict_list_fits_servers n key Cv g d ki M); auto.
Qed.
End Exist.

(* Five GPUs. Job 0 (3 GPUs, until 4) blocks the head, job 1 (3 GPUs, due at 1); meanwhile job 2 (1 GPU, until 3) is
   backfilled, and job 3 (1 GPU, until 10) starts on a budget of 1. Here B = 3. *)
Example backfill_and_budget_example :
  let g := fun j => nth j [3; 3; 1; 1] 0 in
  virtual_order 4 (fun j => j) (fun j => nth j [0; 1; 10; 11] 0) (fun j => nth j [4; 1; 2; 9] 0)
    (fun j => nth j [0; 4; 1; 1] 0) (pool_blocked 4 5 g) g 1 (fun j => nth j [InOrder; InOrder; Backfill; OnBudget] InOrder).
Proof.
  assert (Range : forall t h, head 4 (fun j => j) (fun j => nth j [0; 1; 10; 11] 0) (fun j => nth j [0; 4; 1; 1] 0) t h ->
                  h = 1 /\ 1 <= t < 4).
  { intros t h [Hh [D _]]. destruct h as [|[|[|[|h]]]]; cbn in D; lia. }
  constructor.
  - intros t h H. apply Range in H. destruct H as [-> [L1 L2]].
    destruct t as [|[|[|[|t]]]]; try lia; unfold pool_blocked; vm_compute; lia.
  - intros i Hi. destruct i as [|[|[|[|i]]]]; try lia; unfold pool_blocked; vm_compute; lia.
  - intros i Hi H. destruct i as [|[|[|[|i]]]]; try discriminate; try lia; (split; [cbn; lia|]);
    intros [|[|[|[|j]]]]; cbn; lia.
  - intros b Hb H. destruct b as [|[|[|[|b]]]]; try discriminate; try lia. exists 1. split.
    + split; [lia|]. split; [cbn; lia|]. intros [|[|[|[|j]]]]; cbn; lia.
    + intros t L. cbn in L. destruct t as [|[|[|t]]]; try lia; unfold pool_blocked; vm_compute; lia.
  - intros t. unfold busy, running_at, running. cbn [sum nth is_budget andb].
    destruct ((1 <=? t) && (t <? 1 + 9)); lia.
Qed.
