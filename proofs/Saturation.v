(* Saturation: the GPUs that are surely busy while a job cannot be placed.

   Guarantees use the cluster and its rule of placement only through a relation blocked S i, "job i does not fit beside the
   jobs of S", which more jobs can only make true, and through a number B of GPUs that are busy whenever it is true.
   Instances: a pool of G GPUs, B = G - gmax + 1; M servers of c GPUs with every job on one server,
   B = M * (c - gmax + 1); and jobs on at most k of M equal servers. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite.

(* A set of jobs, and the GPUs that they hold. *)
Definition jobs := nat -> bool.
Definition busy (n : nat) (g : nat -> nat) (S : jobs) : nat := sum (fun j => if S j then g j else 0) n.

Definition placement_rule := jobs -> nat -> Prop.

Definition monotone (n : nat) (blocked : placement_rule) : Prop :=
  forall (S S' : jobs) i, (forall j, j < n -> S j = true -> S' j = true) -> blocked S i -> blocked S' i.

Definition saturates (n : nat) (g : nat -> nat) (blocked : placement_rule) (B : nat) : Prop :=
  forall (S : jobs) i, i < n -> blocked S i -> B <= busy n g S.

Lemma busy_mono n g (S S' : jobs) :
  (forall j, j < n -> S j = true -> S' j = true) -> busy n g S <= busy n g S'.
Proof.
  intros H. apply sum_le. intros j Hj. specialize (H j Hj).
  destruct (S j); [rewrite H; auto|destruct (S' j); lia].
Qed.

(* ---------- a pool: any free GPUs will do ---------- *)

Definition pool_blocked (n G : nat) (g : nat -> nat) : placement_rule := fun S i => G < busy n g S + g i.

Lemma pool_monotone n G g : monotone n (pool_blocked n G g).
Proof. intros S S' i H Q. unfold pool_blocked in *. pose proof (busy_mono n g S S' H). lia. Qed.

Theorem pool_saturation n G g gmax :
  (forall j, j < n -> g j <= gmax) -> gmax <= G -> saturates n g (pool_blocked n G g) (G - gmax + 1).
Proof. intros H L S i Hi Q. unfold pool_blocked in Q. specialize (H i Hi). lia. Qed.

(* ---------- servers: every job on one of M servers of c GPUs ---------- *)

Definition used_on (n : nat) (g server : nat -> nat) (S : jobs) (q : nat) : nat :=
  sum (fun j => if S j && (server j =? q) then g j else 0) n.

Definition confined_blocked (n M c : nat) (g server : nat -> nat) : placement_rule :=
  fun S i => forall q, q < M -> c < used_on n g server S q + g i.

Lemma used_on_mono n g server (S S' : jobs) q :
  (forall j, j < n -> S j = true -> S' j = true) -> used_on n g server S q <= used_on n g server S' q.
Proof.
  intros H. apply sum_le. intros j Hj. specialize (H j Hj). destruct (S j); cbn [andb].
  - rewrite H by auto. cbn [andb]. lia.
  - lia.
Qed.

Lemma confined_monotone n M c g server : monotone n (confined_blocked n M c g server).
Proof.
  intros S S' i H Q q Hq. specialize (Q q Hq). pose proof (used_on_mono n g server S S' q H). lia.
Qed.

Lemma used_on_total n M g server S : sum (used_on n g server S) M <= busy n g S.
Proof.
  unfold used_on, busy. rewrite sum_swap. apply sum_le. intros j _.
  destruct (S j); cbn [andb]; [|rewrite sum_zero; lia].
  rewrite (sum_ext _ (fun q => g j * b2n (server j =? q))), sum_scal.
  - rewrite <- (Nat.mul_1_r (g j)) at 2. apply Nat.mul_le_mono_l.
    apply sum_at_most_one. intros a b _ _ A B. apply Nat.eqb_eq in A, B. lia.
  - intros q _. destruct (server j =? q); cbn [b2n]; lia.
Qed.

Theorem confined_saturation n M c g server gmax :
  (forall j, j < n -> g j <= gmax) -> gmax <= c ->
  saturates n g (confined_blocked n M c g server) (M * (c - gmax + 1)).
Proof.
  intros H L S i Hi Q. etransitivity; [|apply (used_on_total n M g server S)].
  rewrite <- sum_const. apply sum_le. intros q Hq. specialize (Q q Hq). specialize (H i Hi). lia.
Qed.

(* ---------- few servers: job i on at most k i of M servers of c GPUs ---------- *)

Definition count (K : nat -> bool) (M : nat) : nat := sum (fun q => b2n (K q)) M.

(* on j q is the number of GPUs that job j holds on server q *)
Definition used (n : nat) (on : nat -> nat -> nat) (S : jobs) (q : nat) : nat :=
  sum (fun j => if S j then on j q else 0) n.

Definition few_servers_blocked (n M c : nat) (g k : nat -> nat) (on : nat -> nat -> nat) : placement_rule :=
  fun S i => forall K, count K M <= k i -> sum (fun q => if K q then c - used n on S q else 0) M < g i.

Lemma few_servers_monotone n M c g k on : monotone n (few_servers_blocked n M c g k on).
Proof.
  intros S S' i H Q K HK. specialize (Q K HK). eapply Nat.le_lt_trans; [|exact Q].
  apply sum_le. intros q _. destruct (K q); [|lia].
  assert (used n on S q <= used n on S' q); [|lia].
  apply sum_le. intros j Hj. specialize (H j Hj). destruct (S j); [rewrite H by auto; lia|lia].
Qed.

Lemma subset_of_size (H : nat -> bool) M k : k <= count H M ->
  exists K, (forall q, K q = true -> H q = true) /\ count K M = k.
Proof.
  revert k. induction M as [|M IH]; intros k L.
  - exists (fun _ => false). unfold count in *. simpl in *. split; [discriminate|lia].
  - unfold count in *. cbn [sum] in L.
    destruct (Nat.le_gt_cases k (sum (fun q => b2n (H q)) M)) as [A|A].
    + destruct (IH k A) as [K [K1 K2]]. exists (fun q => K q && (q <? M)). split.
      * intros q E. apply andb_prop in E. apply K1, E.
      * cbn [sum]. rewrite Nat.ltb_irrefl, andb_false_r. cbn [b2n]. rewrite Nat.add_0_r, <- K2.
        apply sum_ext. intros q Hq. destruct (Nat.ltb_spec q M); [|lia]. rewrite andb_true_r. auto.
    + destruct (H M) eqn:E; cbn [b2n] in L; [|lia]. exists H. split; auto. cbn [sum]. rewrite E. cbn [b2n]. lia.
Qed.

Lemma superset_of_size (H : nat -> bool) M k : count H M <= k <= M ->
  exists K, (forall q, H q = true -> K q = true) /\ count K M = k.
Proof.
  intros [L1 L2].
  assert (E : count (fun q => negb (H q)) M = M - count H M).
  { unfold count. assert (A : sum (fun q => b2n (H q) + b2n (negb (H q))) M = M).
    { rewrite (sum_ext _ (fun _ => 1)), sum_const; [lia|]. intros q _. destruct (H q); auto. }
    rewrite sum_plus in A. lia. }
  destruct (subset_of_size (fun q => negb (H q)) M (k - count H M)) as [L [A B]]; [lia|].
  exists (fun q => H q || L q). split; [intros q ->; auto|].
  unfold count in *. rewrite (sum_ext _ (fun q => b2n (H q) + b2n (L q))), sum_plus; [lia|].
  intros q _. specialize (A q). destruct (H q), (L q); cbn [orb b2n negb] in *; auto. discriminate A; auto.
Qed.

(* If every k servers have less than g GPUs free together, all M have at most g - 1 + (M - k) * floor((g - 1) / k). *)
Lemma free_when_blocked (free : nat -> nat) M k g : 0 < k <= M -> 0 < g ->
  (forall K, count K M <= k -> sum (fun q => if K q then free q else 0) M < g) ->
  sum free M <= g - 1 + (M - k) * ((g - 1) / k).
Proof.
  intros [Kp KM] Gp Q. set (v := (g - 1) / k). set (H := fun q => v <? free q).
  assert (V : g - 1 < k * S v) by (apply Nat.mul_succ_div_gt; lia).
  assert (LH : count H M < k).
  { destruct (Nat.lt_ge_cases (count H M) k) as [|L]; auto. exfalso.
    destruct (subset_of_size H M k L) as [K [A E]]. specialize (Q K ltac:(lia)).
    assert (k * S v <= sum (fun q => if K q then free q else 0) M); [|lia].
    rewrite <- E, Nat.mul_comm. unfold count. rewrite <- sum_scal. apply sum_le. intros q _.
    destruct (K q) eqn:F; cbn [b2n]; [|lia]. apply A in F. unfold H in F. apply Nat.ltb_lt in F. lia. }
  destruct (superset_of_size H M k ltac:(lia)) as [K [A E]]. specialize (Q K ltac:(lia)).
  assert (D : count K M + count (fun q => negb (K q)) M = M).
  { unfold count. rewrite <- sum_plus, (sum_ext _ (fun _ => 1)), sum_const; [lia|].
    intros q _. destruct (K q); auto. }
  transitivity (sum (fun q => (if K q then free q else 0) + v * b2n (negb (K q))) M).
  - apply sum_le. intros q _. destruct (K q) eqn:F; cbn [negb b2n]; [lia|].
    destruct (Nat.le_gt_cases (free q) v); [lia|]. exfalso.
    rewrite A in F; [discriminate|]. unfold H. apply Nat.ltb_lt. auto.
  - rewrite sum_plus, sum_scal. fold (count (fun q => negb (K q)) M).
    replace (count (fun q => negb (K q)) M) with (M - k) by lia. lia.
Qed.

Theorem few_servers_saturation n M c g k on B :
  (forall j, j < n -> sum (on j) M <= g j) ->
  (forall j, j < n -> 0 < g j /\ 0 < k j <= M) ->
  (forall j, j < n -> B + (g j - 1 + (M - k j) * ((g j - 1) / k j)) <= M * c) ->
  saturates n g (few_servers_blocked n M c g k on) B.
Proof.
  intros O P L S i Hi Q. destruct (P i Hi) as [Gp Kp].
  pose proof (free_when_blocked (fun q => c - used n on S q) M (k i) (g i) Kp Gp Q) as F.
  specialize (L i Hi).
  assert (U : sum (used n on S) M <= busy n g S).
  { unfold used, busy. rewrite sum_swap. apply sum_le. intros j Hj. destruct (S j); [apply O; auto|].
    rewrite sum_zero. lia. }
  assert (T : M * c <= sum (fun q => c - used n on S q) M + sum (used n on S) M).
  { rewrite <- sum_const, <- sum_plus. apply sum_le. intros q _. lia. }
  lia.
Qed.
