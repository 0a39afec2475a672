(* Predictions: virtual completions of predicted sizes against schedules of real sizes.

   If no prediction exceeds the real size by more than a factor on/od >= 1, the sum of virtual completions exceeds the bound
   of Relaxation.v by at most that factor (predicted_virtual_completions): a rival slowed down by on/od has time for the
   predicted sizes. To speak of a slower rival, time is cut finer; SRPT stays SRPT on a finer grid (refine_srpt). *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation.

(* ---------- a finer grid ---------- *)

Lemma srpt_ext n R R' W W' s :
  (forall j, R j = R' j) -> (forall j, W j = W' j) -> srpt n R W s -> srpt n R' W' s.
Proof.
  intros ER EW H t. specialize (H t). unfold alive in *. destruct (s t) as [j|].
  - rewrite <- ER, <- !EW. destruct H as [A B]. split; auto.
    intros i. rewrite <- ER, <- EW. apply B.
  - intros i. rewrite <- ER, <- EW. apply H.
Qed.

(* Every step is cut into b steps. *)
Section Refine.
Variables (n b : nat) (R W : nat -> nat) (s : machine).
Hypothesis bpos : 0 < b.
Let s' : machine := fun u => s (u / b).

Lemma refine_work q i j : i < b -> served s' (b * q + i) j = b * served s q j + i * serves s q j.
Proof.
  intros Hi. unfold served. rewrite sum_app, sum_blocks.
  assert (E : forall q k, k < b -> serves s' (b * q + k) j = serves s q j).
  { intros q' k Hk. unfold serves, s'.
    replace ((b * q' + k) / b) with q' by (apply (Nat.div_unique _ _ _ k); lia). auto. }
  f_equal.
  - rewrite <- sum_scal. apply sum_ext. intros q' _.
    rewrite (sum_ext _ (fun _ => serves s q' j)), sum_const; auto.
  - rewrite (sum_ext _ (fun _ => serves s q j)), sum_const; auto.
    intros k Hk. apply E. lia.
Qed.

Lemma refine_srpt : srpt n R W s -> srpt n (fun j => b * R j) (fun j => b * W j) s'.
Proof.
  intros H u. pose proof (Nat.div_mod u b ltac:(lia)) as E.
  pose proof (Nat.mod_upper_bound u b ltac:(lia)) as L.
  unfold s' at 1. specialize (H (u / b)). set (q := u / b) in *. set (i := u mod b) in *.
  clearbody q i. subst u. unfold alive in *.
  assert (RL : forall j, b * R j <= b * q + i -> R j <= q) by (intros; nia).
  assert (WK : forall j, b * served s q j + i * serves s q j < b * W j -> served s q j < W j)
    by (intros; nia).
  destruct (s q) as [j|] eqn:Q.
  - destruct H as [[H1 [H2 H3]] H4]. rewrite refine_work by auto.
    assert (S1 : serves s q j = 1) by (unfold serves; rewrite Q, Nat.eqb_refl; auto).
    split; [split; auto; split; [nia|rewrite S1; nia]|].
    intros k [K1 [K2 K3]]. rewrite refine_work in * by auto.
    specialize (H4 k ltac:(auto)).
    destruct (Nat.eq_dec j k) as [->|Ne]; auto.
    assert (serves s q k = 0).
    { unfold serves. rewrite Q. destruct (Nat.eqb_spec j k); auto. contradiction. }
    rewrite H, S1 in *. specialize (WK k). rewrite H in WK. specialize (WK ltac:(lia)).
    rewrite !Nat.mul_0_r, !Nat.add_0_r in *. nia.
  - intros k [K1 [K2 K3]]. rewrite refine_work in K3 by auto. apply (H k). auto.
Qed.

Lemma refine_completes j c :
  completes W (served s) j c -> completes (fun j => b * W j) (served s') j (b * c).
Proof.
  intros [A B]. split.
  - pose proof (refine_work c 0 j bpos). rewrite Nat.add_0_r in H. rewrite H. nia.
  - intros t Ht. pose proof (Nat.div_mod t b ltac:(lia)) as E.
    pose proof (Nat.mod_upper_bound t b ltac:(lia)) as L. rewrite E, refine_work by auto.
    assert (t / b < c) by (apply Nat.div_lt_upper_bound; lia).
    specialize (B _ H). pose proof (serves_le_1 s (t / b) j). nia.
Qed.
End Refine.

(* ---------- a slower rival ---------- *)

(* The rival slowed down e-fold. *)
Lemma stretch_feasible n G r a od e :
  0 < e -> od <= e -> fluid_feasible n G r a ->
  fluid_feasible n G (fun j => od * r j) (fun u => a (u / e)).
Proof.
  intros Ep L [A B]. split; [intros; apply A|]. intros t j Hj H. apply B in H; auto.
  pose proof (Nat.mul_div_le t e ltac:(lia)). nia.
Qed.

Lemma stretch_done a e t j : 0 < e -> received (fun u => a (u / e)) (e * t) j = e * received a t j.
Proof.
  intros Ep. unfold received. rewrite sum_blocks, <- sum_scal. apply sum_ext. intros q _.
  rewrite (sum_ext _ (fun _ => a q j)), sum_const; auto.
  intros i Hi. replace ((e * q + i) / e) with q by (apply (Nat.div_unique _ _ _ i); lia). auto.
Qed.

Theorem predicted_virtual_completions n G r g p phat on od s x Cv C :
  0 < G -> 0 < od -> od <= on ->
  (forall j, j < n -> od * phat j <= on * p j) ->
  srpt n (fun j => G * r j) (fun j => g j * phat j) s ->
  (forall j, j < n -> completes (fun j => g j * phat j) (served s) j (Cv j)) ->
  cluster_feasible n G r g x ->
  (forall j, j < n -> p j <= slots_run x (C j) j) ->
  od * sum Cv n <= G * (on * sum C n).
Proof.
  intros Gp Op Oo P HS HV HF HC. rewrite <- (sum_scal od), <- (sum_scal on).
  apply (fluid_lower_bound n G (fun j => od * r j) (fun j => od * (g j * phat j))
           (fun u => s (u / od)) (fun u => gpu_work g x (u / on))); auto.
  - eapply srpt_ext; [| |apply (refine_srpt n od (fun j => G * r j) (fun j => g j * phat j) s Op HS)].
    + intros j. cbn beta. lia.
    + intros j. reflexivity.
  - apply stretch_feasible; auto; [lia|]. apply gpu_work_fluid; auto.
  - intros j Hj. apply (refine_completes od (fun j => g j * phat j)); auto.
  - intros j Hj. rewrite stretch_done by lia. rewrite gpu_work_done.
    specialize (P j Hj). specialize (HC j Hj).
    transitivity (g j * (od * phat j)); [lia|].
    transitivity (g j * (on * slots_run x (C j) j)); [|lia].
    apply Nat.mul_le_mono_l. etransitivity; [exact P|]. apply Nat.mul_le_mono_l; auto.
Qed.

