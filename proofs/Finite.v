(* Finite sums over {0, ..., m-1} and search in them. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.

Fixpoint sum (f : nat -> nat) (m : nat) : nat :=
  match m with 0 => 0 | S m' => sum f m' + f m' end.

Definition b2n (b : bool) : nat := if b then 1 else 0.

(* ---------- sums ---------- *)

Lemma sum_ext f h m : (forall i, i < m -> f i = h i) -> sum f m = sum h m.
Proof. induction m; simpl; intros; auto. rewrite IHm, H; auto. Qed.

Lemma sum_le f h m : (forall i, i < m -> f i <= h i) -> sum f m <= sum h m.
Proof.
  induction m; simpl; intros H; auto.
  pose proof (H m (Nat.lt_succ_diag_r m)).
  assert (sum f m <= sum h m) by auto. lia.
Qed.

Lemma sum_zero m : sum (fun _ => 0) m = 0.
Proof. induction m; simpl; lia. Qed.

Lemma sum_const c m : sum (fun _ => c) m = m * c.
Proof. induction m; simpl; lia. Qed.

Lemma sum_plus f h m : sum (fun i => f i + h i) m = sum f m + sum h m.
Proof. induction m; simpl; lia. Qed.

Lemma sum_scal c f m : sum (fun i => c * f i) m = c * sum f m.
Proof. induction m; simpl; [lia|]. rewrite IHm. lia. Qed.

Lemma sum_mono_bound f m m' : m <= m' -> sum f m <= sum f m'.
Proof. induction 1; simpl; lia. Qed.

Lemma sum_swap (f : nat -> nat -> nat) m n :
  sum (fun i => sum (fun j => f i j) n) m = sum (fun j => sum (fun i => f i j) m) n.
Proof.
  induction m; simpl.
  - symmetry. apply sum_zero.
  - rewrite IHm. symmetry. apply sum_plus.
Qed.

Lemma sum_term f m i : i < m -> f i <= sum f m.
Proof.
  induction m; simpl; [lia|]. intros H.
  destruct (Nat.eq_dec i m) as [->|]; [lia|]. assert (i < m) by lia. specialize (IHm H0). lia.
Qed.

(* c of the numbers below T are below c *)
Lemma sum_lt c T : c <= T -> sum (fun t => b2n (t <? c)) T = c.
Proof.
  intros H. assert (forall m, sum (fun t => b2n (t <? c)) m = Nat.min m c) as E.
  { induction m; cbn [sum]; [lia|]. rewrite IHm. destruct (Nat.ltb_spec m c); cbn [b2n]; lia. }
  rewrite E. lia.
Qed.

(* b - a of the numbers below T are in [a, b) *)
Lemma sum_between a b T : b <= T -> sum (fun t => b2n ((a <=? t) && (t <? b))) T = b - a.
Proof.
  intros H. assert (forall m, sum (fun t => b2n ((a <=? t) && (t <? b))) m = Nat.min m b - a) as E.
  { induction m; cbn [sum]; [lia|]. rewrite IHm.
    destruct (Nat.leb_spec a m), (Nat.ltb_spec m b); cbn [andb b2n]; lia. }
  rewrite E. lia.
Qed.

Lemma sum_single f m i : sum (fun j => if j =? i then f j else 0) m = if i <? m then f i else 0.
Proof.
  induction m; cbn [sum]; [destruct (i <? 0) eqn:E; auto; apply Nat.ltb_lt in E; lia|].
  rewrite IHm. destruct (Nat.eqb_spec m i), (Nat.ltb_spec i m), (Nat.ltb_spec i (S m)); subst; lia.
Qed.

Lemma sum_at_most_one (b : nat -> bool) m :
  (forall i j, i < m -> j < m -> b i = true -> b j = true -> i = j) ->
  sum (fun i => b2n (b i)) m <= 1.
Proof.
  induction m; intros H; cbn [sum]; [lia|].
  specialize (IHm (fun i j Hi Hj => H i j (Nat.lt_lt_succ_r _ _ Hi) (Nat.lt_lt_succ_r _ _ Hj))).
  destruct (b m) eqn:E; cbn [b2n]; [|lia].
  rewrite (sum_ext _ (fun _ => 0)), sum_zero; [lia|].
  intros i Hi. destruct (b i) eqn:F; auto. exfalso.
  specialize (H i m ltac:(lia) ltac:(lia) F E). lia.
Qed.

Lemma sum_list f m : list_sum (map f (seq 0 m)) = sum f m.
Proof.
  induction m; auto. rewrite seq_S, map_app, list_sum_app, IHm. simpl. lia.
Qed.

Lemma sum_app f m m' : sum f (m + m') = sum f m + sum (fun i => f (m + i)) m'.
Proof.
  induction m'; simpl; [rewrite Nat.add_0_r; lia|].
  rewrite Nat.add_succ_r. simpl. lia.
Qed.

(* a sum of length G * t is t blocks of length G *)
Lemma sum_blocks f G t : sum f (G * t) = sum (fun b => sum (fun i => f (G * b + i)) G) t.
Proof.
  induction t; simpl; [rewrite Nat.mul_0_r; reflexivity|].
  rewrite Nat.mul_succ_r, sum_app, IHt. reflexivity.
Qed.

Lemma sum_bounds f n : exists T, forall j, j < n -> f j <= T.
Proof. exists (sum f n). intros. apply sum_term; auto. Qed.

(* ---------- search ---------- *)

Lemma search (P : nat -> Prop) m : (forall i, P i \/ ~ P i) ->
  (exists i, i < m /\ P i) \/ (forall i, i < m -> ~ P i).
Proof.
  intros D. induction m as [|m [[i [Hi Pi]]|F]].
  - right. lia.
  - left. exists i. auto.
  - destruct (D m); [left; exists m; auto|right].
    intros i Hi. destruct (Nat.eq_dec i m) as [->|]; auto. apply F. lia.
Qed.

Lemma search_all (P : nat -> Prop) m : (forall i, P i \/ ~ P i) ->
  (forall i, i < m -> P i) \/ ~ (forall i, i < m -> P i).
Proof.
  intros D. destruct (search (fun i => ~ P i) m) as [[i [Hi F]]|A].
  - intros i. destruct (D i); auto.
  - right. auto.
  - left. intros i Hi. specialize (A i Hi). destruct (D i); [auto|contradiction].
Qed.

(* a least witness of a decidable property *)
Lemma least (P : nat -> Prop) N : (forall t, P t \/ ~ P t) ->
  P N -> exists t, P t /\ forall u, u < t -> ~ P u.
Proof.
  intros D. induction N as [N IH] using lt_wf_ind. intros H.
  destruct (search P N D) as [[u [Hu Pu]]|F]; [apply (IH u); auto|exists N; auto].
Qed.
