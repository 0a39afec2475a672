(* The bound by mean busy times.

   Let M j be the mean of the times at which the machine of static priority, least original work first, serves job j. Then

     sum C >= sum_j (M j / G + p j / 2)

   for every cluster schedule (mean_busy_lower_bound). Twice the mean times the work is the sum of 2u + 1 over the steps u in
   which j is served, its moment; everything is stated in moments. The proof compares, for each threshold, the service to
   jobs with no more work: at the start of every slot the machine has given them as much as the schedule has
   (ahead_at_slots), and in between at least what the schedule spreads evenly (ahead_between). A weighted sum with weights
   that do not grow with the work is a sum over thresholds. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation.

(* ---------- sums of odd numbers, and summation by parts ---------- *)

Lemma sum_odd m : sum (fun i => 2 * i + 1) m = m * m.
Proof. induction m; cbn [sum]; lia. Qed.

(* Work a u at step u, A before it. *)
Lemma moment_by_parts (a : nat -> nat) T :
  sum (fun u => a u * (2 * u + 1)) T + sum (fun u => sum a u + sum a (S u)) T = 2 * T * sum a T.
Proof. induction T; cbn [sum]; [lia|]. cbn [sum] in IHT. lia. Qed.

(* The same for slots of G steps, work spread evenly: its mean time is the middle of the slot. *)
Lemma slot_moment_by_parts (a : nat -> nat) G T :
  sum (fun b => a b * (G * (2 * b + 1))) T + G * sum (fun b => sum a b + sum a (S b)) T = 2 * (G * T) * sum a T.
Proof. induction T; cbn [sum]; [lia|]. cbn [sum] in IHT. lia. Qed.

(* A nonnegative weight is the number of thresholds below it. *)
Lemma sum_by_thresholds (c m : nat -> nat) n K : (forall j, j < n -> c j <= K) ->
  sum (fun j => c j * m j) n = sum (fun k => sum (fun j => if k <? c j then m j else 0) n) K.
Proof.
  intros H. rewrite sum_swap. apply sum_ext. intros j Hj. rewrite <- (sum_lt (c j) K (H j Hj)) at 1.
  rewrite Nat.mul_comm, <- sum_scal. apply sum_ext. intros k _. destruct (k <? c j); cbn [b2n]; lia.
Qed.

(* Slots that are used at most once: the later ones weigh more. *)
Lemma moment_of_slots (x : nat -> bool) C :
  sum (fun b => b2n (x b) * (2 * b + 1)) C + sum (fun b => b2n (x b)) C * sum (fun b => b2n (x b)) C
  <= 2 * C * sum (fun b => b2n (x b)) C.
Proof.
  induction C; cbn [sum]; [lia|]. set (p := sum (fun b => b2n (x b)) C) in *.
  assert (p <= C).
  { unfold p. rewrite <- (Nat.mul_1_r C) at 2. rewrite <- (sum_const 1). apply sum_le. intros b _.
    destruct (x b); cbn [b2n]; lia. }
  destruct (x C); cbn [b2n]; nia.
Qed.

Section MeanBusy.
Variables (n G : nat) (r g p : nat -> nat) (s : machine) (x : runs) (C : nat -> nat) (H : nat).
Let W j := g j * p j.
Hypothesis G_pos : 0 < G.
Hypothesis HS : static_priority n (fun j => G * r j) W s.
Hypothesis HX : cluster_feasible n G r g x.
(* job j runs in p j slots, all before C j; by slot H everything is done, on the machine too *)
Hypothesis runs_p : forall j, j < n -> slots_run x (C j) j = p j /\ forall t, C j <= t -> x t j = false.
Hypothesis C_H : forall j, j < n -> C j <= H.
Hypothesis machine_H : forall j, j < n -> W j <= served s (G * H) j.

(* Twice the mean time of the service to job j on the machine, times its work. *)
Definition moment (T j : nat) : nat := sum (fun u => serves s u j * (2 * u + 1)) T.

Lemma slots_run_by t j : j < n -> slots_run x t j <= p j.
Proof.
  intros Hj. destruct (runs_p j Hj) as [E Z]. destruct (Nat.le_gt_cases t (C j)) as [L|L].
  - rewrite <- E. apply sum_mono_bound. auto.
  - unfold slots_run. replace t with (C j + (t - C j)) by lia. rewrite sum_app.
    fold (slots_run x (C j) j). rewrite E, (sum_ext _ (fun _ => 0)), sum_zero; [lia|].
    intros i _. rewrite Z by lia. auto.
Qed.

Lemma slots_run_at_H j : j < n -> slots_run x H j = p j.
Proof.
  intros Hj. apply Nat.le_antisymm; [apply slots_run_by; auto|]. destruct (runs_p j Hj) as [E _].
  rewrite <- E. apply sum_mono_bound. auto.
Qed.

(* ---------- one threshold ---------- *)

Section Threshold.
Variable A : nat -> bool.
(* the jobs of A have priority over all others *)
Hypothesis first : forall i j, i < n -> j < n -> A i = true -> A j = false -> W i < W j.

(* service of the machine in a step, and of the schedule in a slot, to the jobs of A *)
Let a (u : nat) : nat := sum (fun j => if A j then serves s u j else 0) n.
Let f (b : nat) : nat := sum (fun j => if A j then gpu_work g x b j else 0) n.

Lemma machine_total t : sum a t = sum (fun j => if A j then served s t j else 0) n.
Proof.
  unfold a. rewrite sum_swap. apply sum_ext. intros j _. destruct (A j); [reflexivity|apply sum_zero].
Qed.

Lemma schedule_total b : sum f b = sum (fun j => if A j then g j * slots_run x b j else 0) n.
Proof.
  unfold f. rewrite sum_swap. apply sum_ext. intros j _. destruct (A j); [apply gpu_work_done|apply sum_zero].
Qed.

(* A step serves A, or all released jobs of A are finished. *)
Lemma serves_or_finished u :
  1 <= a u \/ forall j, j < n -> A j = true -> G * r j <= u -> W j <= served s u j.
Proof.
  pose proof (HS u) as Q. destruct (s u) as [k|] eqn:E.
  - destruct Q as [[Hk [Rk Uk]] Least]. destruct (A k) eqn:Ak.
    + left. unfold a. pose proof (sum_term (fun j => if A j then serves s u j else 0) n k Hk) as T. cbn beta in T.
      rewrite Ak in T. unfold serves in T at 1. rewrite E, Nat.eqb_refl in T. cbn [b2n] in T. exact T.
    + right. intros j Hj Aj Rj. destruct (Nat.le_gt_cases (W j) (served s u j)) as [|L]; auto. exfalso.
      specialize (Least j (conj Hj (conj Rj L))). specialize (first j k Hj Hk Aj Ak). lia.
  - right. intros j Hj Aj Rj. destruct (Nat.le_gt_cases (W j) (served s u j)) as [|L]; auto. exfalso.
    apply (Q j). split; auto.
Qed.

(* In i steps from slot b on the machine serves A throughout, or has finished what the schedule has by the next slot. *)
Lemma slot_progress b i : i <= G -> sum a (G * b) + i <= sum a (G * b + i) \/ sum f (S b) <= sum a (G * b + i).
Proof.
  induction i; intros L; [left; rewrite !Nat.add_0_r; auto|].
  replace (G * b + S i) with (S (G * b + i)) by lia.
  change (sum a (S (G * b + i))) with (sum a (G * b + i) + a (G * b + i)).
  destruct (IHi ltac:(lia)) as [Q|Q]; [|right; lia].
  destruct (serves_or_finished (G * b + i)) as [S1|F]; [left; lia|right].
  enough (sum f (S b) <= sum a (G * b + i)) by lia.
  rewrite schedule_total, machine_total. apply sum_le. intros j Hj. destruct (A j) eqn:Aj; auto.
  destruct (Nat.le_gt_cases (r j) b) as [Rj|Rj].
  - etransitivity; [|apply F; auto; nia]. apply Nat.mul_le_mono_l, slots_run_by; auto.
  - pose proof (received_unreleased n G r (gpu_work g x) (S b) j (gpu_work_fluid _ _ _ _ _ HX) Hj Rj) as Z.
    rewrite gpu_work_done in Z. lia.
Qed.

Lemma schedule_speed b : f b <= G.
Proof.
  etransitivity; [|apply (proj1 HX b)]. apply sum_le. intros j _. unfold gpu_work. destruct (A j); lia.
Qed.

Lemma ahead_at_slots b : sum f b <= sum a (G * b).
Proof.
  induction b; [simpl; lia|]. replace (G * S b) with (G * b + G) by lia.
  destruct (slot_progress b G ltac:(auto)) as [Q|Q]; [|exact Q].
  cbn [sum]. pose proof (schedule_speed b). lia.
Qed.

Lemma ahead_between b i : i <= G -> (G - i) * sum f b + i * sum f (S b) <= G * sum a (G * b + i).
Proof.
  intros L. pose proof (ahead_at_slots b) as B. pose proof (schedule_speed b) as V.
  assert (S1 : sum f (S b) = sum f b + f b) by reflexivity.
  transitivity (G * sum f b + i * f b); [rewrite S1; nia|].
  destruct (slot_progress b i L) as [Q|Q].
  - transitivity (G * (sum a (G * b) + i)); [nia|]. apply Nat.mul_le_mono_l. exact Q.
  - transitivity (G * sum f (S b)); [rewrite S1; nia|]. apply Nat.mul_le_mono_l. exact Q.
Qed.

(* The two areas, by trapezoids: within a slot, and in all. *)
Lemma area_of_slot b :
  G * (G * (sum f b + sum f (S b))) <= G * sum (fun i => sum a (G * b + i) + sum a (S (G * b + i))) G.
Proof.
  rewrite <- sum_scal.
  transitivity (sum (fun i => (G - i) * sum f b + i * sum f (S b) + ((G - S i) * sum f b + S i * sum f (S b))) G).
  - set (F := sum f b). set (F' := sum f (S b)). apply Nat.eq_le_incl.
    rewrite (sum_ext _ (fun i => (2 * (G - S i) + 1) * F + (2 * i + 1) * F')).
    + rewrite sum_plus.
      rewrite (sum_ext (fun i => (2 * (G - S i) + 1) * F) (fun i => F * (2 * (G - S i) + 1))) by (intros; lia).
      rewrite (sum_ext (fun i => (2 * i + 1) * F') (fun i => F' * (2 * i + 1))) by (intros; lia).
      rewrite !sum_scal, sum_odd.
      assert (E : forall m, sum (fun i => 2 * (m - S i) + 1) m = m * m).
      { clear. intros m. enough (sum (fun i => 2 * (m - S i) + 1) m + sum (fun i => 2 * i + 1) m = 2 * (m * m))
          by (rewrite sum_odd in H; lia).
        rewrite <- sum_plus, (sum_ext _ (fun _ => 2 * m)), sum_const; [lia|]. intros i Hi. lia. }
      rewrite E. lia.
    + intros i Hi. replace (G - i) with (S (G - S i)) by lia. lia.
  - apply sum_le. intros i Hi. pose proof (ahead_between b i ltac:(lia)) as P. pose proof (ahead_between b (S i) ltac:(lia)) as Q.
    replace (G * b + S i) with (S (G * b + i)) in Q by lia. lia.
Qed.

Lemma area_in_all : G * sum (fun b => sum f b + sum f (S b)) H <= sum (fun u => sum a u + sum a (S u)) (G * H).
Proof.
  rewrite sum_blocks, <- sum_scal. apply sum_le. intros b _.
  apply (Nat.mul_le_mono_pos_l _ _ G G_pos). exact (area_of_slot b).
Qed.

(* So the moment of the machine on A is at most that of the schedule. *)
Lemma moment_of_threshold :
  sum (fun j => if A j then moment (G * H) j else 0) n
  <= sum (fun j => if A j then g j * sum (fun b => b2n (x b j) * (G * (2 * b + 1))) H else 0) n.
Proof.
  assert (EM : sum (fun j => if A j then moment (G * H) j else 0) n = sum (fun u => a u * (2 * u + 1)) (G * H)).
  { unfold moment, a. rewrite (sum_ext (fun u => _ * (2 * u + 1))
      (fun u => sum (fun j => if A j then serves s u j * (2 * u + 1) else 0) n)).
    - rewrite sum_swap. apply sum_ext. intros j _. destruct (A j); [reflexivity|rewrite sum_zero; auto].
    - intros u _. rewrite Nat.mul_comm, <- sum_scal. apply sum_ext. intros j _. destruct (A j); lia. }
  assert (EF : sum (fun j => if A j then g j * sum (fun b => b2n (x b j) * (G * (2 * b + 1))) H else 0) n
               = sum (fun b => f b * (G * (2 * b + 1))) H).
  { unfold f. rewrite (sum_ext (fun b => _ * (G * (2 * b + 1)))
      (fun b => sum (fun j => if A j then g j * (b2n (x b j) * (G * (2 * b + 1))) else 0) n)).
    - rewrite sum_swap. apply sum_ext. intros j _. destruct (A j); [rewrite sum_scal; auto|rewrite sum_zero; auto].
    - intros b _. rewrite Nat.mul_comm, <- sum_scal. apply sum_ext. intros j _. unfold gpu_work.
      destruct (A j), (x b j); cbn [b2n]; lia. }
  rewrite EM, EF.
  pose proof (moment_by_parts a (G * H)) as PM. pose proof (slot_moment_by_parts f G H) as PF.
  assert (T : sum f H = sum a (G * H)).
  { rewrite schedule_total, machine_total. apply sum_ext. intros j Hj. destruct (A j); auto.
    rewrite slots_run_at_H by auto. apply Nat.le_antisymm; [apply (machine_H j Hj)|].
    apply (no_waste n (fun j => G * r j) W s (static_diligent _ _ _ _ HS)). }
  rewrite T in PF. pose proof area_in_all. lia.
Qed.
End Threshold.

(* ---------- all thresholds ---------- *)

(* Weights that do not grow with the work. *)
Lemma weighted_moments (c : nat -> nat) : (forall i j, i < n -> j < n -> W i <= W j -> c j <= c i) ->
  sum (fun j => c j * moment (G * H) j) n
  <= sum (fun j => c j * (g j * sum (fun b => b2n (x b j) * (G * (2 * b + 1))) H)) n.
Proof.
  intros Mono. destruct (sum_bounds c n) as [K HK]. rewrite !(sum_by_thresholds c _ n K HK).
  apply sum_le. intros k _. apply (moment_of_threshold (fun j => k <? c j)).
  intros i j Hi Hj Ai Aj. apply Nat.ltb_lt in Ai. apply Nat.ltb_ge in Aj.
  destruct (Nat.lt_ge_cases (W i) (W j)) as [|L]; auto. specialize (Mono j i Hj Hi L). lia.
Qed.

(* The moment of a job in the schedule, in terms of its completion. *)
Lemma moment_of_job j : j < n ->
  g j * sum (fun b => b2n (x b j) * (G * (2 * b + 1))) H + W j * (G * p j) <= W j * (G * (2 * C j)).
Proof.
  intros Hj. destruct (runs_p j Hj) as [E Z].
  assert (S1 : sum (fun b => b2n (x b j) * (G * (2 * b + 1))) H = G * sum (fun b => b2n (x b j) * (2 * b + 1)) (C j)).
  { rewrite <- sum_scal. replace H with (C j + (H - C j)) by (specialize (C_H j Hj); lia). rewrite sum_app.
    rewrite (sum_ext (fun i => b2n (x (C j + i) j) * _) (fun _ => 0)), sum_zero.
    - rewrite Nat.add_0_r. apply sum_ext. intros b _. lia.
    - intros i _. rewrite Z by lia. auto. }
  rewrite S1. pose proof (moment_of_slots (fun b => x b j) (C j)) as M. cbn beta in M.
  change (sum (fun b => b2n (x b j)) (C j)) with (slots_run x (C j) j) in M. rewrite E in M. unfold W.
  pose proof (Nat.mul_le_mono_l _ _ (g j * G) M). lia.
Qed.

(* Each mean may be rounded down. *)
Theorem mean_busy_lower_bound_exact :
  (forall j, j < n -> 0 < W j) ->
  sum (fun j => moment (G * H) j / W j) n + G * sum p n <= 2 * G * sum C n.
Proof.
  intros Wp.
  (* a common multiple of the works *)
  assert (Mult : forall m, m <= n -> exists D, 0 < D /\ forall j, j < m -> exists c, c * W j = D).
  { induction m as [|m IH]; intros Hm; [exists 1; split; [lia|lia]|].
    destruct (IH ltac:(lia)) as [D [Dp Div]]. exists (D * W m). specialize (Wp m ltac:(lia)). split; [nia|].
    intros j Hj. destruct (Nat.eq_dec j m) as [->|]; [exists D; auto|].
    destruct (Div j ltac:(lia)) as [c Hc]. exists (c * W m). rewrite <- Hc. lia. }
  destruct (Mult n (Nat.le_refl n)) as [D [Dp Div]]. set (c := fun j => D / W j).
  assert (Hc : forall j, j < n -> c j * W j = D).
  { intros j Hj. destruct (Div j Hj) as [q Hq]. unfold c. rewrite <- Hq, Nat.div_mul; auto.
    specialize (Wp j Hj). lia. }
  pose proof (weighted_moments c) as WM.
  assert (Mono : forall i j, i < n -> j < n -> W i <= W j -> c j <= c i).
  { intros i j Hi Hj L. apply Nat.div_le_compat_l. specialize (Wp i Hi). lia. }
  specialize (WM Mono).
  apply (Nat.mul_le_mono_pos_l _ _ D Dp).
  assert (L1 : D * sum (fun j => moment (G * H) j / W j) n <= sum (fun j => c j * moment (G * H) j) n).
  { rewrite <- sum_scal. apply sum_le. intros j Hj. rewrite <- (Hc j Hj), <- Nat.mul_assoc. apply Nat.mul_le_mono_l.
    apply Nat.mul_div_le. specialize (Wp j Hj). lia. }
  assert (L2 : sum (fun j => c j * (g j * sum (fun b => b2n (x b j) * (G * (2 * b + 1))) H)) n + D * (G * sum p n)
               <= D * (2 * G * sum C n)).
  { rewrite <- (sum_scal G), <- (sum_scal (2 * G)), <- !(sum_scal D), <- sum_plus. apply sum_le. intros j Hj.
    pose proof (Nat.mul_le_mono_l _ _ (c j) (moment_of_job j Hj)) as J. specialize (Hc j Hj).
    assert (c j * (W j * (G * p j)) = D * (G * p j)) by (rewrite <- Hc; lia).
    assert (c j * (W j * (G * (2 * C j))) = D * (2 * G * C j)) by (rewrite <- Hc; lia). lia. }
  lia.
Qed.
End MeanBusy.

(* Against every cluster schedule; C j is any time by which job j has had its p j slots, and H any slot by which the
   schedule and the machine are done. *)
Theorem mean_busy_lower_bound n G r g p s x C H :
  0 < G -> (forall j, j < n -> 0 < g j * p j) ->
  static_priority n (fun j => G * r j) (fun j => g j * p j) s ->
  (forall j, j < n -> g j * p j <= served s (G * H) j) ->
  cluster_feasible n G r g x ->
  (forall j, j < n -> p j <= slots_run x (C j) j) -> (forall j, j < n -> C j <= H) ->
  sum (fun j => moment s (G * H) j / (g j * p j)) n + G * sum p n <= 2 * G * sum C n.
Proof.
  intros Gp Wp HS HM [Cap Rel] HC CH.
  (* what runs beyond its p j slots is left out *)
  set (x' := fun t j => x t j && (slots_run x t j <? p j)).
  assert (E : forall t j, slots_run x' t j = Nat.min (slots_run x t j) (p j)).
  { intros t j. induction t; [reflexivity|].
    change (slots_run x' t j + b2n (x' t j) = Nat.min (slots_run x t j + b2n (x t j)) (p j)). rewrite IHt. unfold x'.
    destruct (x t j), (Nat.ltb_spec (slots_run x t j) (p j)); cbn [andb b2n]; lia. }
  apply (mean_busy_lower_bound_exact n G r g p s x' C H); auto.
  - split.
    + intros t. etransitivity; [|apply (Cap t)]. apply sum_le. intros j _. unfold x'.
      destruct (x t j); cbn [andb]; [destruct (slots_run x t j <? p j)|]; lia.
    + intros t j Hj X. apply andb_prop in X. apply Rel; tauto.
  - intros j Hj. specialize (HC j Hj). split; [rewrite E; lia|]. intros t L. unfold x'.
    pose proof (sum_mono_bound (fun u => b2n (x u j)) (C j) t L) as M. fold (slots_run x (C j) j) (slots_run x t j) in M.
    destruct (Nat.ltb_spec (slots_run x t j) (p j)); [lia|]. apply andb_false_r.
Qed.
