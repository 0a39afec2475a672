(* The relaxation, explicitly: every cluster schedule becomes a schedule of one machine that is G times as fast, by serving
   the GPU-slots of each slot one after another. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation.

(* The units of work of a slot, one after another *)
Definition unit_list (n : nat) (b : nat -> nat) : list nat :=
  flat_map (fun j => repeat j (b j)) (seq 0 n).

(* They are served in the steps of that slot. *)
Definition induced (n G : nat) (a : fluid) : machine :=
  fun u => nth_error (unit_list n (a (u / G))) (u mod G).

(* How often j occurs in l. *)
Definition occ (l : list nat) (j : nat) : nat := list_sum (map (fun i => b2n (i =? j)) l).

Lemma occ_app l l' j : occ (l ++ l') j = occ l j + occ l' j.
Proof. unfold occ. rewrite map_app. apply list_sum_app. Qed.

Lemma occ_repeat i k j : occ (repeat i k) j = if i =? j then k else 0.
Proof.
  unfold occ. induction k; simpl; [destruct (i =? j); auto|]. rewrite IHk.
  destruct (i =? j); cbn [b2n]; lia.
Qed.

Lemma unit_list_S n b : unit_list (S n) b = unit_list n b ++ repeat n (b n).
Proof. unfold unit_list. rewrite seq_S, flat_map_app. simpl. rewrite app_nil_r. auto. Qed.

Lemma unit_list_occ n b j : occ (unit_list n b) j = if j <? n then b j else 0.
Proof.
  induction n; auto. rewrite unit_list_S, occ_app, IHn, occ_repeat.
  destruct (Nat.ltb_spec j n), (Nat.ltb_spec j (S n)), (Nat.eqb_spec n j); subst; try lia.
Qed.

Lemma unit_list_len n b : length (unit_list n b) = sum b n.
Proof. induction n; auto. rewrite unit_list_S, app_length, IHn, repeat_length. auto. Qed.

Lemma unit_list_in n b j : In j (unit_list n b) -> j < n /\ 0 < b j.
Proof.
  unfold unit_list. rewrite in_flat_map. intros [i [Hi H]]. apply in_seq in Hi.
  assert (j = i) by (eapply repeat_spec; eauto). subst. split; [lia|].
  destruct (b i); [contradiction|lia].
Qed.

Lemma occ_nth l j k : length l <= k ->
  sum (fun i => match nth_error l i with Some h => b2n (h =? j) | None => 0 end) k = occ l j.
Proof.
  revert l. induction k; intros l H.
  - destruct l; auto. simpl in H. lia.
  - replace (S k) with (1 + k) by lia. rewrite sum_app. simpl.
    destruct l as [|h l]; simpl.
    + rewrite sum_zero. reflexivity.
    + rewrite IHk by (simpl in H; lia). reflexivity.
Qed.

Theorem induced_feasible n G r a :
  0 < G -> fluid_feasible n G r a -> machine_feasible n (fun j => G * r j) (induced n G a).
Proof.
  intros Gp [_ B] u j E. unfold induced in E. apply nth_error_In, unit_list_in in E.
  destruct E as [E1 E2]. split; auto. apply B in E2; auto.
  pose proof (Nat.mul_div_le u G ltac:(lia)). nia.
Qed.

Theorem induced_work n G r a t j :
  0 < G -> fluid_feasible n G r a -> j < n -> served (induced n G a) (G * t) j = received a t j.
Proof.
  intros Gp [A _] Hj. unfold served, received. rewrite sum_blocks. apply sum_ext. intros b _.
  transitivity (occ (unit_list n (a b)) j).
  - rewrite <- (occ_nth _ j G); [|rewrite unit_list_len; auto].
    apply sum_ext. intros i Hi. unfold serves, induced.
    replace ((G * b + i) / G) with b
      by (apply (Nat.div_unique _ _ _ i); lia).
    replace ((G * b + i) mod G) with i
      by (apply (Nat.mod_unique _ _ b); lia).
    reflexivity.
  - rewrite unit_list_occ. destruct (Nat.ltb_spec j n); lia.
Qed.

(* A cluster schedule induces a schedule of the machine in which job j has work g j * p j and is finished no later. *)
Theorem induced_machine n G r g p x :
  0 < G -> cluster_feasible n G r g x ->
  let s := induced n G (gpu_work g x) in
  machine_feasible n (fun j => G * r j) s /\
  forall j c, j < n -> p j <= slots_run x c j -> g j * p j <= served s (G * c) j.
Proof.
  intros Gp F s. pose proof (gpu_work_fluid _ _ _ _ _ F) as FF. split.
  - apply induced_feasible; auto.
  - intros j c Hj H. unfold s. erewrite induced_work by eauto. rewrite gpu_work_done. nia.
Qed.
