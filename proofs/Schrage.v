(* Schrage's theorem: SRPT leaves the fewest unfinished jobs at every instant.

   Slots are cut into G steps of the virtual machine. The rival is any fluid schedule of G units of capacity: it gives
   up to G units of work in a slot, spread over the released jobs in any way. One machine against one is G = 1. The
   invariant is domination of residuals (Residual.v): for every k, the work left on the machine after deleting any k jobs
   is at most the least that the rival has left after deleting k. *)
From Coq Require Import Arith Lia Bool List Permutation.
Import ListNotations.
From Frostline Require Import Finite Residual VirtualMachine.

(* ---------- the rival ---------- *)

(* a t j is the work given to job j in slot t. *)
Definition fluid := nat -> nat -> nat.

(* Work given to job j before slot t. *)
Definition received (a : fluid) (t j : nat) : nat := sum (fun u => a u j) t.

Definition fluid_feasible (n G : nat) (r : nat -> nat) (a : fluid) : Prop :=
  (forall t, sum (a t) n <= G) /\ (forall t j, j < n -> 0 < a t j -> r j <= t).

Lemma received_S a t j : received a (S t) j = received a t j + a t j.
Proof. reflexivity. Qed.

Lemma received_unreleased n G r a t j :
  fluid_feasible n G r a -> j < n -> t <= r j -> received a t j = 0.
Proof.
  intros [_ F] Hj. induction t; intros H; auto. rewrite received_S, IHt by lia.
  destruct (a t j) eqn:E; auto. specialize (F t j Hj). lia.
Qed.

Lemma received_mono a t t' j : t <= t' -> received a t j <= received a t' j.
Proof. apply sum_mono_bound. Qed.

(* ---------- residuals of lists indexed by jobs ---------- *)

Lemma perm_filter {A} (p : A -> bool) l :
  Permutation l (filter p l ++ filter (fun x => negb (p x)) l).
Proof.
  induction l as [|x l IH]; simpl; auto. destruct (p x); simpl.
  - constructor; auto.
  - rewrite <- Permutation_middle. constructor; auto.
Qed.

(* Releasing the same jobs on both sides keeps domination: A tells the new jobs, v their works. *)
Lemma release_mono (js : list nat) (A : nat -> bool) (v g h : nat -> nat) :
  (forall j, In j js -> A j = true -> g j = 0 /\ h j = 0) ->
  (forall k, residual (map g js) k <= residual (map h js) k) ->
  forall k, residual (map (fun j => if A j then v j else g j) js) k
         <= residual (map (fun j => if A j then v j else h j) js) k.
Proof.
  intros Z H k.
  set (P := filter A js). set (Q := filter (fun j => negb (A j)) js).
  assert (PQ : forall x : nat -> nat, Permutation (map x js) (map x P ++ map x Q))
    by (intros x; rewrite <- map_app; apply Permutation_map, perm_filter).
  assert (HQ : forall k, residual (map g Q) k <= residual (map h Q) k).
  { intros k'. specialize (H k').
    rewrite (residual_perm _ _ (PQ g)), (residual_perm _ _ (PQ h)) in H.
    rewrite !residual_zeros in H; auto;
    intros x Hx; apply in_map_iff in Hx; destruct Hx as [j [<- Hj]];
    apply filter_In in Hj; destruct Hj; apply Z; auto. }
  rewrite (residual_perm _ _ (PQ _)).
  rewrite (residual_perm _ _ (PQ (fun j => if A j then v j else h j))).
  assert (EP : forall x : nat -> nat, map (fun j => if A j then v j else x j) P = map v P).
  { intros x. apply map_ext_in. intros j Hj. apply filter_In in Hj. destruct Hj as [_ ->]. auto. }
  assert (EQ : forall x : nat -> nat, map (fun j => if A j then v j else x j) Q = map x Q).
  { intros x. apply map_ext_in. intros j Hj. apply filter_In in Hj. destruct Hj as [_ Hj].
    destruct (A j); auto. discriminate. }
  rewrite !EP, !EQ. apply residual_app_mono; auto.
Qed.

(* One unit given to a smallest positive entry. *)
Lemma srpt_unit (js : list nat) (g : nat -> nat) j0 k :
  NoDup js -> In j0 js -> 0 < g j0 -> (forall j, In j js -> g j = 0 \/ g j0 <= g j) ->
  residual (map (fun j => g j - b2n (j0 =? j)) js) k <= residual (map g js) k - 1.
Proof.
  intros ND I P M. apply in_split in I. destruct I as [l1 [l2 ->]].
  apply NoDup_remove in ND. destruct ND as [_ NI].
  assert (E : forall x : nat -> nat,
      Permutation (map x (l1 ++ j0 :: l2)) (x j0 :: map x (l1 ++ l2))).
  { intros x. change (x j0 :: map x (l1 ++ l2)) with (map x (j0 :: l1 ++ l2)).
    apply Permutation_map. symmetry. apply Permutation_middle. }
  rewrite (residual_perm _ _ (E _)), (residual_perm _ _ (E g)). rewrite Nat.eqb_refl.
  replace (map (fun j => g j - b2n (j0 =? j)) (l1 ++ l2)) with (map g (l1 ++ l2)).
  - apply residual_smallest; auto. intros x Hx. apply in_map_iff in Hx. destruct Hx as [j [<- Hj]].
    apply M. apply in_app_iff in Hj. apply in_app_iff. simpl. tauto.
  - apply map_ext_in. intros j Hj. destruct (Nat.eqb_spec j0 j); simpl; [|lia].
    subst. contradiction.
Qed.

(* ---------- the domination invariant ---------- *)

Section Domination.
Variables (n G : nat) (r W : nat -> nat) (s : machine) (a : fluid).
Hypothesis Gpos : 0 < G.
Hypothesis HS : srpt n (fun j => G * r j) W s.
Hypothesis HF : fluid_feasible n G r a.

Let js := seq 0 n.
(* remaining work of released jobs, at step G*t+i with the releases of slot t *)
Let x t i := map (fun j => if r j <=? t then W j - served s (G * t + i) j else 0) js.
Let y t := map (fun j => if r j <=? t then W j - received a t j else 0) js.

Lemma srpt_substep t i k : i < G -> residual (x t (S i)) k <= residual (x t i) k - 1.
Proof.
  intros Hi. unfold x. set (u := G * t + i). replace (G * t + S i) with (S u) by lia.
  set (g := fun j => if r j <=? t then W j - served s u j else 0).
  assert (REL : forall j, (r j <=? t) = true <-> G * r j <= u).
  { intros j. rewrite Nat.leb_le. unfold u. split; intros; nia. }
  pose proof (HS u) as H. destruct (s u) as [j0|] eqn:E.
  - destruct H as [[Hj [Hr Hw]] HM].
    assert (R0 : (r j0 <=? t) = true) by (apply REL; auto).
    replace (map (fun j => if r j <=? t then W j - served s (S u) j else 0) js)
      with (map (fun j => g j - b2n (j0 =? j)) js).
    + apply srpt_unit.
      * apply seq_NoDup.
      * apply in_seq. lia.
      * unfold g. rewrite R0. lia.
      * intros j Hj'. apply in_seq in Hj'. unfold g. rewrite R0.
        destruct (r j <=? t) eqn:Ej; auto.
        destruct (Nat.lt_ge_cases (served s u j) (W j)); [right|left; lia].
        apply HM. split; [lia|]. split; auto. apply REL; auto.
    + apply map_ext. intros j. unfold g. rewrite served_S. unfold serves. rewrite E.
      destruct (r j <=? t) eqn:Ej; [lia|].
      destruct (Nat.eqb_spec j0 j); simpl; auto.
  - assert (Z : forall f : nat -> nat, (forall j, In j js -> f j = 0) ->
                residual (map f js) k = 0).
    { intros f Hf. rewrite <- (app_nil_r (map f js)). rewrite residual_zeros; auto.
      intros v Hv. apply in_map_iff in Hv. destruct Hv as [j [<- ?]]. auto. }
    rewrite (Z (fun j => if r j <=? t then W j - served s (S u) j else 0)); [lia|].
    intros j Hj. apply in_seq in Hj. destruct (r j <=? t) eqn:Ej; auto.
    apply REL in Ej. rewrite served_S. unfold serves. rewrite E.
    destruct (Nat.lt_ge_cases (served s u j) (W j)); [|lia].
    exfalso. apply (H j). split; [lia|]. split; auto.
Qed.

Lemma srpt_substeps t i k : i <= G -> residual (x t i) k <= residual (x t 0) k - i.
Proof.
  induction i; intros Hi; [lia|].
  pose proof (srpt_substep t i k). specialize (IHi ltac:(lia)). lia.
Qed.

Theorem domination t k : residual (x t 0) k <= residual (y t) k.
Proof.
  revert k. induction t; intros k.
  - replace (y 0) with (x 0 0); auto. apply map_ext. intros j.
    rewrite Nat.mul_0_r. reflexivity.
  - set (A := fun j => r j =? S t).
    set (g := fun j => if r j <=? t then W j - served s (G * t + G) j else 0).
    set (h := fun j => if r j <=? t then W j - received a (S t) j else 0).
    replace (x (S t) 0) with (map (fun j => if A j then W j else g j) js).
    replace (y (S t)) with (map (fun j => if A j then W j else h j) js).
    + apply release_mono.
      * intros j _ HA. unfold A in HA. apply Nat.eqb_eq in HA. unfold g, h.
        destruct (Nat.leb_spec (r j) t); lia.
      * intros k'.
        assert (residual (y t) k' <= residual (map h js) k' + G).
        { unfold y. etransitivity; [apply (residual_dec js _ h)|].
          apply Nat.add_le_mono_l. unfold js. rewrite sum_list.
          etransitivity; [|apply (proj1 HF t)]. apply sum_le. intros j Hj. unfold h.
          rewrite received_S. destruct (r j <=? t); lia. }
        pose proof (srpt_substeps t G k' (Nat.le_refl G)) as B. unfold x in B at 1.
        fold g in B. specialize (IHt k'). lia.
    + apply map_ext_in. intros j Hj. apply in_seq in Hj. unfold A, h.
      destruct (Nat.eqb_spec (r j) (S t)).
      * rewrite (received_unreleased n G r); auto; try lia.
        destruct (Nat.leb_spec (r j) (S t)); lia.
      * destruct (Nat.leb_spec (r j) (S t)), (Nat.leb_spec (r j) t); lia.
    + apply map_ext_in. intros j Hj. apply in_seq in Hj. unfold A, g.
      replace (G * S t + 0) with (G * t + G) by lia.
      destruct (Nat.eqb_spec (r j) (S t)).
      * rewrite (served_unreleased n (fun j => G * r j)).
        -- destruct (Nat.leb_spec (r j) (S t)); lia.
        -- eapply srpt_feasible; eauto.
        -- nia.
      * destruct (Nat.leb_spec (r j) (S t)), (Nat.leb_spec (r j) t); lia.
Qed.

Lemma unfinished_split (D : nat -> nat -> nat) t t' :
  (forall j, j < n -> t < r j -> D t' j = 0) ->
  unfinished n W D t' =
  positives (map (fun j => if r j <=? t then W j - D t' j else 0) js)
  + sum (fun j => if r j <=? t then 0 else b2n (0 <? W j)) n.
Proof.
  intros Z. unfold unfinished. rewrite <- !(sum_list _ n). fold js. unfold positives.
  assert (Z' : forall j, In j js -> t < r j -> D t' j = 0)
    by (intros j Hj; apply in_seq in Hj; apply Z; lia).
  clear Z. induction js as [|j l IH]; auto.
  simpl. rewrite IH; [|intros; apply Z'; auto; right; auto].
  pose proof (Z' j (or_introl eq_refl)) as Zj.
  destruct (Nat.leb_spec (r j) t).
  - destruct (Nat.ltb_spec (D t' j) (W j)); destruct (Nat.ltb_spec 0 (W j - D t' j)); simpl; lia.
  - rewrite Zj by lia. simpl. lia.
Qed.

(* At every slot boundary the machine has at most as many unfinished jobs as the rival. *)
Theorem virtual_fewest_unfinished t :
  unfinished n W (served s) (G * t) <= unfinished n W (received a) t.
Proof.
  rewrite (unfinished_split (served s) t), (unfinished_split (received a) t).
  - apply Nat.add_le_mono_r. apply positives_mono. intros k.
    pose proof (domination t k) as D. unfold x in D. rewrite Nat.add_0_r in D. exact D.
  - intros. eapply received_unreleased; eauto. lia.
  - intros j Hj Hr. eapply served_unreleased; [eapply srpt_feasible; eauto|]. simpl. nia.
Qed.

End Domination.

(* ---------- from counts to sums of completion times ---------- *)

Lemma sum_completions n W D C T :
  (forall t t' j, t <= t' -> D t j <= D t' j) ->
  (forall j, j < n -> completes W D j (C j) /\ C j <= T) ->
  sum C n = sum (unfinished n W D) T.
Proof.
  intros M H. unfold unfinished. rewrite sum_swap. apply sum_ext. intros j Hj.
  destruct (H j Hj) as [[H1 H2] H3]. rewrite <- (sum_lt (C j) T H3) at 1.
  apply sum_ext. intros t Ht. f_equal.
  destruct (Nat.ltb_spec t (C j)); destruct (Nat.ltb_spec (D t j) (W j)); auto.
  - specialize (H2 t ltac:(lia)). lia.
  - pose proof (M (C j) t j ltac:(lia)). lia.
Qed.

(* The sum of virtual completions, in steps, is at most G times the sum of the rival's completions, in slots. *)
Theorem virtual_sum n G r W s a Cv C :
  0 < G -> srpt n (fun j => G * r j) W s -> fluid_feasible n G r a ->
  (forall j, j < n -> completes W (served s) j (Cv j)) ->
  (forall j, j < n -> completes W (received a) j (C j)) ->
  sum Cv n <= G * sum C n.
Proof.
  intros Gp HS HF HV HC.
  destruct (sum_bounds Cv n) as [T1 B1]. destruct (sum_bounds C n) as [T2 B2].
  set (T := T1 + T2).
  rewrite (sum_completions n W (received a) C T).
  2: intros; apply received_mono; auto.
  2: intros j Hj; split; auto; specialize (B2 j Hj); unfold T; lia.
  rewrite (sum_completions n W (served s) Cv (G * T)).
  2: intros; apply served_mono; auto.
  2: intros j Hj; split; auto; specialize (B1 j Hj); unfold T; nia.
  rewrite sum_blocks, <- sum_scal. apply sum_le. intros t _.
  rewrite <- (sum_const (unfinished n W (received a) t) G). apply sum_le. intros i _.
  etransitivity; [|apply (virtual_fewest_unfinished n G r W s a Gp HS HF t)].
  apply sum_le. intros j _.
  pose proof (served_mono s (G * t) (G * t + i) j ltac:(lia)).
  destruct (Nat.ltb_spec (served s (G * t + i) j) (W j));
  destruct (Nat.ltb_spec (served s (G * t) j) (W j)); simpl; lia.
Qed.

(* ---------- one machine against one machine ---------- *)

Lemma unit_fluid n r s :
  machine_feasible n r s -> fluid_feasible n 1 r (fun t j => serves s t j).
Proof.
  intros F. split; [intros t; eapply serves_total; eauto|].
  intros t j _ H. unfold serves in H. destruct (s t) as [i|] eqn:E; [|lia].
  destruct (Nat.eqb_spec i j); simpl in H; [|lia]. subst. apply F in E. tauto.
Qed.

Lemma srpt_1 n r W s : srpt n r W s -> srpt n (fun j => 1 * r j) W s.
Proof.
  intros H t. specialize (H t). unfold alive in *. destruct (s t).
  - rewrite Nat.mul_1_l. destruct H as [? H]. split; auto. intros i. rewrite Nat.mul_1_l. auto.
  - intros i. rewrite Nat.mul_1_l. auto.
Qed.

(* Whoever the rival, at every instant SRPT has at most as many unfinished jobs. *)
Theorem schrage_fewest_unfinished n r p s s' :
  srpt n r p s -> machine_feasible n r s' ->
  forall t, unfinished n p (served s) t <= unfinished n p (served s') t.
Proof.
  intros HS HF t.
  pose proof (virtual_fewest_unfinished n 1 r p s _ Nat.lt_0_1 (srpt_1 _ _ _ _ HS)
                (unit_fluid _ _ _ HF) t) as H.
  rewrite Nat.mul_1_l in H. exact H.
Qed.

(* So its sum of completion times is the least. *)
Theorem schrage_least_total_completion n r p s s' C C' :
  srpt n r p s -> machine_feasible n r s' ->
  (forall j, j < n -> completes p (served s) j (C j)) ->
  (forall j, j < n -> completes p (served s') j (C' j)) ->
  sum C n <= sum C' n.
Proof.
  intros HS HF HC HC'. rewrite <- (Nat.mul_1_l (sum C' n)).
  eapply (virtual_sum n 1 r p s); eauto using srpt_1, unit_fluid.
Qed.
