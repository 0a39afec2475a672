(* The guard: any policy whatever, until a due job has waited too long; then virtual order with backfill.

   At time t the guard is up while some job k with due k + Gamma t <= t has not started; Gamma never decreases (it may
   grow with the longest job seen). While the guard is up, jobs start in order, as backfills, or on a budget of E GPUs (of
   none, if E is 0), and the head starts as soon as it fits. While it is down, anything may start. Let U be the start of the
   period of guard in which job i starts, and theta = rho * G / (B - E). Then

     start i <= due i + Gamma + max(0, theta - 1) * (due i + Gamma - U) + theta * (late + wmax - w i) + G * dmax / (B - E),

   where Gamma is taken at start i, jobs become due at most late after their virtual completion, and dmax and wmax bound
   duration and work of the jobs started before (guard_guarantee). With dmax <= rho * pmax the last term is at most
   theta * pmax. Where works are predicted, rho in theta, but not in dmax, grows by the factor of under-prediction. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation AttainedService Saturation VirtualOrder StrictList.

Section Guard.
Variables (n G B E : nat) (key due g d start : nat -> nat) (blocked : placement_rule) (Gamma : nat -> nat).

Definition guard_up (t : nat) : Prop := exists k, k < n /\ due k + Gamma t <= t < start k.

(* how j tells how job j was started while the guard was up. *)
Record guarded (how : nat -> manner) : Prop := {
  guarded_head_starts : forall t h, guard_up t -> head n key due start t h -> blocked (running_at d start t) h;
  guarded_start_fits : fits_at_start n d start blocked;
  guarded_in_order : forall i, i < n -> how i = InOrder -> guard_up (start i) -> in_order n key due start i;
  guarded_backfill : forall b, b < n -> how b = Backfill ->
    backfilled n key due d start blocked (fun j => is_core (how j)) b;
  guarded_budget : forall t, busy n g (fun j => is_budget (how j) && running_at d start t j) <= E;
  guarded_capacity : forall t, busy n g (running_at d start t) <= G
}.

(* The guard has been up from U to t. *)
Definition guard_up_since (U t : nat) : Prop :=
  U <= t /\ (forall u, U <= u < t -> guard_up u) /\ (0 < U -> ~ guard_up (U - 1)).

Lemma guard_up_dec t : guard_up t \/ ~ guard_up t.
Proof.
  destruct (search (fun k => due k + Gamma t <= t < start k) n) as [[k [Hk Q]]|F].
  - intros k. destruct (Nat.le_gt_cases (due k + Gamma t) t), (Nat.le_gt_cases (start k) t); (left; lia) || (right; lia).
  - left. exists k. auto.
  - right. intros [k [Hk Q]]. apply (F k Hk Q).
Qed.

Lemma guard_up_since_exists t : exists U, guard_up_since U t.
Proof.
  induction t as [|t [U [L [Up Down]]]]; [exists 0; split; [lia|split; lia]|].
  destruct (guard_up_dec t) as [Q|Q].
  - exists U. split; [lia|]. split; auto. intros u Hu. destruct (Nat.eq_dec u t) as [->|]; auto. apply Up. lia.
  - exists (S t). split; auto. split; [intros; lia|]. intros _. replace (S t - 1) with t by lia. auto.
Qed.

Variable how : nat -> manner.
Hypothesis key_inj : forall i j, i < n -> j < n -> key i = key j -> i = j.
Hypothesis key_due : forall i j, i < n -> j < n -> key j < key i -> due j <= due i.
Hypothesis blocked_mono : monotone n blocked.
Hypothesis saturated : saturates n g blocked B.
Hypothesis Gamma_grows : forall t u, t <= u -> Gamma t <= Gamma u.
Hypothesis rules : guarded how.

Variables (i U : nat).
Hypothesis Hi : i < n.
Hypothesis since : guard_up_since U (start i).

(* jobs that started while the guard was up, ahead of i *)
Let guarded_ahead : jobs := fun j => (U <=? start j) && (key j <? key i).
(* jobs that were running when the guard went up *)
Let residual_at (t : nat) : jobs := fun j => (start j <? U) && running_at d start t j.

(* While i waits under guard, those hold B - E GPUs. *)
Lemma guarded_busy t : U <= t < start i -> due i + Gamma (start i) < start i ->
  B - E <= busy n g (fun j => guarded_ahead j && running_at d start t j) + busy n g (residual_at t).
Proof.
  intros L Waits. destruct since as [LU [Up Down]]. pose proof (Up t L) as [k [Hk [Dk Sk]]].
  destruct (some_head n key due start key_due k t Hk ltac:(lia)) as [h [H _]].
  pose proof (core_blocks_head n key due d start blocked key_inj blocked_mono (fun j => is_core (how j)) t h
    (guarded_start_fits _ rules)
    (fun b Hb X => guarded_backfill _ rules b Hb (not_core _ X)) H
    (guarded_head_starts _ rules t h (Up t L) H)) as Q.
  apply saturated in Q; [|apply H]. pose proof (guarded_budget _ rules t) as Bud.
  enough (busy n g (fun j => is_core (how j) && running_at d start t j)
          <= busy n g (fun j => guarded_ahead j && running_at d start t j) + busy n g (residual_at t)
             + busy n g (fun j => is_budget (how j) && running_at d start t j)) by lia.
  unfold busy. rewrite <- !sum_plus. apply sum_le. intros j Hj. unfold residual_at, guarded_ahead.
  destruct (running_at d start t j) eqn:R; rewrite ?andb_true_r, ?andb_false_r; [|lia].
  destruct (how j) eqn:Hw; cbn [is_core is_budget]; [|lia|lia].
  destruct (Nat.ltb_spec (start j) U), (Nat.leb_spec U (start j)); cbn [andb]; try lia.
  apply running_spec in R.
  assert (key j < key i); [|destruct (Nat.ltb_spec (key j) (key i)); lia].
  pose proof (guarded_in_order _ rules j Hj Hw (Up (start j) ltac:(lia))) as O.
  apply (in_order_is_ahead n key due start key_inj i j t Hj Hi O). lia.
Qed.

(* Those that were running hold at most G GPUs, for at most as long as the longest of them. *)
Lemma residual_bound dmax : (forall j, j < n -> start j < U -> d j <= dmax) ->
  forall T, sum (fun u => busy n g (residual_at (U + u))) T <= G * dmax.
Proof.
  intros D T. unfold busy. rewrite sum_swap.
  destruct (Nat.eq_dec U 0) as [Z|Z].
  { rewrite (sum_ext _ (fun _ => 0)), sum_zero; [lia|]. intros j _. apply Nat.le_0_r.
    transitivity (sum (fun _ => 0) T); [|rewrite sum_zero; auto]. apply sum_le. intros u _. unfold residual_at.
    destruct (Nat.ltb_spec (start j) U); [lia|]. cbn [andb]. lia. }
  transitivity (dmax * busy n g (running_at d start (U - 1))).
  - unfold busy. rewrite <- sum_scal. apply sum_le. intros j Hj.
    destruct (running_at d start (U - 1) j) eqn:R.
    + apply running_spec in R. specialize (D j Hj ltac:(lia)).
      transitivity (g j * sum (fun u => b2n (running_at d start (U + u) j)) T).
      * rewrite <- sum_scal. apply sum_le. intros u _. unfold residual_at.
        destruct (start j <? U), (running_at d start (U + u) j); cbn [andb b2n]; lia.
      * rewrite Nat.mul_comm. apply Nat.mul_le_mono_r.
        etransitivity; [|exact D]. etransitivity; [|apply (running_slots_le start d (U + T) j)].
        unfold slots_run. rewrite sum_app. apply Nat.le_add_l.
    + rewrite Nat.mul_0_r. transitivity (sum (fun _ => 0) T); [|rewrite sum_zero; auto].
      apply sum_le. intros u _.
      unfold residual_at. destruct (Nat.ltb_spec (start j) U) as [S1|]; cbn [andb]; [|lia].
      destruct (running_at d start (U + u) j) eqn:R'; [exfalso|lia]. apply running_spec in R'.
      assert (running_at d start (U - 1) j = true) by (apply running_spec; lia). congruence.
  - rewrite Nat.mul_comm. apply Nat.mul_le_mono_r, (guarded_capacity _ rules).
Qed.

(* The wait since the guard went up. *)
Theorem guarded_wait dmax : (forall j, j < n -> start j < U -> d j <= dmax) -> due i + Gamma (start i) < start i ->
  (start i - U) * (B - E) <= sum (fun j => if guarded_ahead j && (start j <? start i) then g j * d j else 0) n + G * dmax.
Proof.
  intros D Waits. destruct since as [LU _]. set (T := start i - U).
  rewrite <- sum_const.
  transitivity (sum (fun u => busy n g (fun j => (guarded_ahead j && (start j <? start i)) && running_at d start (U + u) j)
                             + busy n g (residual_at (U + u))) T).
  - apply sum_le. intros u Hu. etransitivity; [apply (guarded_busy (U + u) ltac:(lia) Waits)|].
    apply Nat.add_le_mono_r, busy_mono. intros j Hj X. apply andb_prop in X. destruct X as [X R].
    rewrite X, R. apply running_spec in R. rewrite andb_true_r. apply Nat.ltb_lt. lia.
  - rewrite sum_plus. apply Nat.add_le_mono; [|apply residual_bound; auto].
    etransitivity; [|apply (busy_over_time n d start g (fun j => guarded_ahead j && (start j <? start i)) (U + T))].
    rewrite sum_app. apply Nat.le_add_l.
Qed.

(* ---------- with the virtual machine ---------- *)

Variables (R W Cv : nat -> nat) (s : machine) (an ad late dmax wmax : nat).
Hypothesis HS : srpt n R W s.
Hypothesis HV : forall j, j < n -> completes W (served s) j (Cv j).
Hypothesis entry : forall j, j < n -> Cv j <= due j <= Cv j + late.
Hypothesis area : forall j, j < n -> ad * (g j * d j) <= an * (G * W j).
Hypothesis longest : forall j, j < n -> start j < start i -> d j <= dmax.
Hypothesis most_work : forall j, j < n -> start j < start i \/ j = i -> W j <= wmax.

(* The guard goes up at the latest Gamma after i is due. *)
Lemma guard_not_late : due i + Gamma (start i) < start i -> U <= due i + Gamma (start i).
Proof.
  intros L. destruct since as [LU [_ Down]].
  destruct (Nat.le_gt_cases U (due i + Gamma (start i))) as [|Q]; auto. exfalso.
  apply Down; [lia|]. exists i. pose proof (Gamma_grows (U - 1) (start i) ltac:(lia)). split; [auto|lia].
Qed.

(* A job unstarted when the guard went up was due at most Gamma before. *)
Lemma guarded_due j : j < n -> U <= start j -> start j <= start i -> U <= due j + Gamma (start i).
Proof.
  intros Hj L1 L2. destruct since as [LU [_ Down]].
  destruct (Nat.le_gt_cases U (due j + Gamma (start i))) as [|Q]; auto. exfalso.
  apply Down; [lia|]. exists j. pose proof (Gamma_grows (U - 1) (start i) ltac:(lia)). split; [auto|lia].
Qed.

Theorem guard_guarantee :
  ad * (B - E) * start i + an * G * W i <=
  ad * (B - E) * (due i + Gamma (start i))
  + (an * G - ad * (B - E)) * (due i + Gamma (start i) - U)
  + an * G * (late + wmax) + ad * G * dmax.
Proof.
  set (latest := due i + Gamma (start i)).
  pose proof (Nat.mul_le_mono_l _ _ (an * G) (most_work i Hi (or_intror eq_refl))) as Wi.
  destruct (Nat.le_gt_cases (start i) latest) as [L|L].
  { pose proof (Nat.mul_le_mono_l _ _ (ad * (B - E)) L). generalize ((an * G - ad * (B - E)) * (latest - U)). intros. lia. }
  pose proof (guard_not_late L) as UL. fold latest in UL. destruct since as [LU _].
  pose proof (guarded_wait dmax (fun j Hj Sj => longest j Hj ltac:(lia)) L) as Wt.
  set (K := fun j => (guarded_ahead j && (start j <? start i)) || (j =? i)).
  (* the jobs charged, and i, complete on the virtual machine between U - Gamma - late and due i *)
  assert (V : sum (fun j => if K j then W j else 0) n <= (due i - (U - Gamma (start i) - late)) + wmax).
  { apply (work_completed_between n R W s HS _ _ K wmax Cv); [lia|].
    intros j Hj Kj. unfold K, guarded_ahead in Kj. apply orb_prop in Kj. destruct Kj as [Kj|Kj].
    - rewrite !andb_true_iff, Nat.leb_le, !Nat.ltb_lt in Kj. destruct Kj as [[K1 K2] K3].
      split; [apply most_work; auto|]. split; [auto|].
      pose proof (guarded_due j Hj K1 ltac:(lia)). pose proof (entry j Hj). pose proof (key_due i j Hi Hj K2). lia.
    - apply Nat.eqb_eq in Kj. subst j. split; [apply most_work; auto|]. split; [auto|].
      pose proof (entry i Hi). unfold latest in *. lia. }
  assert (A : ad * sum (fun j => if guarded_ahead j && (start j <? start i) then g j * d j else 0) n + an * G * W i
              <= an * G * sum (fun j => if K j then W j else 0) n).
  { transitivity (an * G * (sum (fun j => if guarded_ahead j && (start j <? start i) then W j else 0) n + W i)).
    - rewrite Nat.mul_add_distr_l. apply Nat.add_le_mono_r. rewrite <- !sum_scal. apply sum_le. intros j Hj.
      destruct (guarded_ahead j && (start j <? start i)); [|lia]. specialize (area j Hj). lia.
    - apply Nat.mul_le_mono_l.
      transitivity (sum (fun j => (if guarded_ahead j && (start j <? start i) then W j else 0)
                                  + if j =? i then W j else 0) n).
      + rewrite sum_plus, sum_single. destruct (Nat.ltb_spec i n); lia.
      + apply sum_le. intros j Hj. unfold K. destruct (Nat.eqb_spec j i) as [->|].
        * rewrite Nat.ltb_irrefl, andb_false_r. cbn [orb]. lia.
        * rewrite orb_false_r. lia. }
  pose proof (Nat.mul_le_mono_l _ _ ad Wt) as Wt'.
  assert (X : due i - (U - Gamma (start i) - late) <= latest - U + late) by (unfold latest in *; lia).
  pose proof (Nat.mul_le_mono_l _ _ (an * G) V) as V'. pose proof (Nat.mul_le_mono_l _ _ (an * G) X) as X'.
  assert (Q : ad * (B - E) * (start i - U) + an * G * W i <= an * G * (latest - U) + an * G * (late + wmax) + ad * G * dmax)
    by lia.
  assert (P : an * G * (latest - U) <= (an * G - ad * (B - E)) * (latest - U) + ad * (B - E) * (latest - U)).
  { rewrite <- Nat.mul_add_distr_r. apply Nat.mul_le_mono_r. lia. }
  assert (E1 : ad * (B - E) * start i = ad * (B - E) * (start i - U) + ad * (B - E) * U).
  { rewrite <- Nat.mul_add_distr_l. f_equal. lia. }
  assert (E2 : ad * (B - E) * latest = ad * (B - E) * (latest - U) + ad * (B - E) * U).
  { rewrite <- Nat.mul_add_distr_l. f_equal. lia. }
  lia.
Qed.
End Guard.

(* ---------- the strict list is guarded, with Gamma = 0 ---------- *)

Theorem strict_list_is_guarded n G key due g d start blocked :
  (forall i j, i < n -> j < n -> key i = key j -> i = j) ->
  monotone n blocked -> strict_list n key due d blocked start ->
  (forall t, busy n g (running start d t) <= G) ->
  guarded n G 0 key due g d start blocked (fun _ => 0) (fun _ => InOrder).
Proof.
  intros key_inj Mono L Cap. pose proof (strict_list_keeps_rules n key due g d key_inj blocked start Mono L) as V.
  constructor.
  - intros t h _. apply (head_starts_when_it_fits _ _ _ _ _ _ _ _ _ V).
  - apply (every_start_fits _ _ _ _ _ _ _ _ _ V).
  - intros i Hi _ _. apply (L i Hi).
  - discriminate.
  - apply (budget_kept _ _ _ _ _ _ _ _ _ V).
  - exact Cap.
Qed.
