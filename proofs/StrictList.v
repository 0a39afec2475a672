(* The strict list: due jobs start in order as soon as they fit, and nobody overtakes.

   It keeps the rules of virtual order with budget 0 and without backfill (strict_list_keeps_rules). It never holds more
   GPUs than there are, on a pool or on any server (strict_list_fits_pool, strict_list_fits_servers). And it exists for
   every list, on servers (strict_list_on_servers_exists) and on a pool (strict_list_exists). *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation Saturation VirtualOrder.

Section Strict.
Variables (n : nat) (key due g d : nat -> nat).
Hypothesis key_inj : forall i j, i < n -> j < n -> key i = key j -> i = j.

(* jobs ahead of i that run at t *)
Definition ahead (start : nat -> nat) (i t : nat) : jobs := fun j => (key j <? key i) && running start d t j.

Definition strict_list (blocked : placement_rule) (start : nat -> nat) : Prop :=
  forall i, i < n ->
    in_order n key due start i /\
    ~ blocked (ahead start i (start i)) i /\
    forall t, head n key due start t i -> blocked (ahead start i t) i.

Theorem strict_list_keeps_rules blocked start :
  monotone n blocked -> strict_list blocked start ->
  virtual_order n key due d start blocked g 0 (fun _ => InOrder).
Proof.
  intros Mono L. constructor.
  - intros t h H. destruct (L h (proj1 H)) as [_ [_ A]]. eapply Mono; [|apply (A t H)].
    intros j Hj X. unfold ahead in X. apply andb_prop in X. apply X.
  - intros i Hi Q. destruct (L i Hi) as [_ [F _]]. apply F. eapply Mono; [|exact Q].
    intros j Hj X. cbn beta in X. apply andb_prop in X. destruct X as [S1 R]. apply Nat.ltb_lt in S1.
    unfold ahead. unfold running_at in R. rewrite R, andb_true_r. apply Nat.ltb_lt.
    destruct (Nat.lt_trichotomy (key j) (key i)) as [|[E|K]]; auto; exfalso.
    + apply key_inj in E; auto. subst. lia.
    + destruct (L j Hj) as [[_ A] _]. specialize (A i Hi K). lia.
  - intros i Hi _. apply (L i Hi).
  - discriminate.
  - intros t. unfold busy. rewrite (sum_ext _ (fun _ => 0)), sum_zero; auto.
Qed.

(* ---------- capacity ---------- *)

(* If every job fits beside the jobs ahead when it starts in order, capacity is kept at all times: of the jobs that run,
   the last in the order bounds the use. The use u of a job may be zero. *)
Lemma capacity_kept (start u : nat -> nat) (c : nat) :
  (forall i, i < n -> in_order n key due start i) ->
  (forall i, i < n -> 0 < u i -> busy n u (ahead start i (start i)) + u i <= c) ->
  forall t, busy n u (running start d t) <= c.
Proof.
  intros O F t.
  assert (H : forall K, busy n u (fun j => (key j <? K) && running start d t j) <= c).
  { induction K.
    - unfold busy. rewrite (sum_ext _ (fun _ => 0)), sum_zero; [lia|]. intros j _.
      destruct (Nat.ltb_spec (key j) 0); [lia|]. auto.
    - destruct (search (fun i => key i = K /\ running start d t i = true /\ 0 < u i) n) as [[i [Hi [Ki [Ri Ui]]]]|N].
      { intros i. destruct (Nat.eq_dec (key i) K), (running start d t i), (Nat.lt_ge_cases 0 (u i));
        solve [auto | right; intros [? [? ?]]; congruence || lia]. }
      + etransitivity; [|apply (F i Hi Ui)]. unfold busy.
        replace (u i) with (sum (fun j => if j =? i then u j else 0) n)
          by (rewrite sum_single; destruct (Nat.ltb_spec i n); lia).
        unfold busy. rewrite <- sum_plus. apply sum_le. intros j Hj.
        destruct (running start d t j) eqn:Rj; rewrite ?andb_true_r, ?andb_false_r; [|lia].
        destruct (Nat.ltb_spec (key j) (S K)); [|lia].
        destruct (Nat.eqb_spec j i) as [->|Ne]; [destruct (ahead _ _ _ _); lia|].
        assert (key j < key i) by (assert (key j <> key i) by (intros X; apply Ne, key_inj; auto); lia).
        assert (ahead start i (start i) j = true) as ->; [|lia].
        unfold ahead. apply andb_true_intro. split; [apply Nat.ltb_lt; auto|].
        apply running_spec in Rj, Ri. apply running_spec. destruct (O i Hi) as [_ A]. specialize (A j Hj H0). lia.
      + etransitivity; [|exact IHK]. apply sum_le. intros j Hj.
        destruct (running start d t j) eqn:Rj; rewrite ?andb_true_r, ?andb_false_r; [|lia].
        destruct (Nat.ltb_spec (key j) (S K)), (Nat.ltb_spec (key j) K); try lia.
        destruct (Nat.eq_dec (u j) 0); [lia|]. exfalso. apply (N j Hj). split; [lia|]. split; auto. lia. }
  etransitivity; [|apply (H (S (sum key n)))]. apply busy_mono. intros j Hj R.
  pose proof (sum_term key n j Hj). rewrite R, andb_true_r. apply Nat.ltb_lt. lia.
Qed.

Theorem strict_list_fits_pool G start :
  strict_list (pool_blocked n G g) start -> forall t, busy n g (running start d t) <= G.
Proof.
  intros L. apply capacity_kept.
  - intros i Hi. apply (L i Hi).
  - intros i Hi _. destruct (L i Hi) as [_ [F _]]. unfold pool_blocked in F. lia.
Qed.

(* On servers, each job starts on a server with room. *)
Definition server_has_room (c : nat) (server start : nat -> nat) : Prop :=
  forall i, i < n -> used_on n g server (ahead start i (start i)) (server i) + g i <= c.

Theorem strict_list_fits_servers M c server start :
  strict_list (confined_blocked n M c g server) start -> server_has_room c server start ->
  forall t q, used_on n g server (running start d t) q <= c.
Proof.
  intros L Room t q.
  assert (E : forall S : jobs, used_on n g server S q = busy n (fun j => if server j =? q then g j else 0) S).
  { intros S. apply sum_ext. intros j _. destruct (S j); auto. }
  rewrite E. apply capacity_kept.
  - intros i Hi. apply (L i Hi).
  - intros i Hi U. rewrite <- E. specialize (Room i Hi). destruct (Nat.eqb_spec (server i) q); [subst; auto|lia].
Qed.

(* ---------- existence ---------- *)

Section Construct.
Variables (M c : nat).
Hypothesis M_pos : 0 < M.
Hypothesis g_c : forall j, j < n -> g j <= c.

Definition may_start (server start : nat -> nat) (i t q : nat) : Prop :=
  due i <= t /\ (forall j, j < n -> key j < key i -> start j <= t) /\
  q < M /\ used_on n g server (ahead start i t) q + g i <= c.

Lemma may_start_ext server server' start start' i t q :
  (forall j, j < n -> key j < key i -> start j = start' j /\ server j = server' j) ->
  may_start server start i t q -> may_start server' start' i t q.
Proof.
  intros E [A [B [C D]]]. split; auto. split; [|split; auto].
  - intros j Hj Kj. destruct (E j Hj Kj) as [<- _]. auto.
  - replace (used_on n g server' (ahead start' i t) q) with (used_on n g server (ahead start i t) q); auto.
    apply sum_ext. intros j Hj. unfold ahead. destruct (Nat.ltb_spec (key j) (key i)) as [K|]; cbn [andb]; auto.
    destruct (E j Hj K) as [S1 S2]. unfold running. rewrite S1, S2. auto.
Qed.

Lemma may_start_dec server start i t : (exists q, may_start server start i t q) \/ ~ exists q, may_start server start i t q.
Proof.
  assert (D : (forall j, j < n -> (key j < key i -> start j <= t)) \/
              ~ (forall j, j < n -> (key j < key i -> start j <= t))).
  { apply search_all. intros j. destruct (Nat.le_gt_cases (start j) t); [left; auto|].
    destruct (Nat.lt_ge_cases (key j) (key i)); [right; intros A; specialize (A H0); lia|]. left. lia. }
  destruct (Nat.le_gt_cases (due i) t); [|right; intros [q [? _]]; lia].
  destruct D as [D|D]; [|right; intros [q [_ [A _]]]; auto].
  destruct (search (fun q => used_on n g server (ahead start i t) q + g i <= c) M) as [[q [Hq Q]]|F].
  - intros q. destruct (Nat.le_gt_cases (used_on n g server (ahead start i t) q + g i) c); [auto|right; lia].
  - left. exists q. split; auto.
  - right. intros [q [_ [_ [Hq Q]]]]. apply (F q Hq Q).
Qed.

Lemma may_start_at_the_end server start i : i < n ->
  exists q, may_start server start i (due i + sum (fun j => start j + d j) n) q.
Proof.
  intros Hi. exists 0.
  assert (S1 : forall j, j < n -> start j + d j <= sum (fun j => start j + d j) n)
    by (intros j Hj; apply (sum_term (fun j => start j + d j)); auto).
  split; [lia|]. split; [intros j Hj _; specialize (S1 j Hj); lia|]. split; auto.
  unfold used_on. rewrite (sum_ext _ (fun _ => 0)), sum_zero; [specialize (g_c i Hi); lia|].
  intros j Hj. specialize (S1 j Hj). unfold ahead, running.
  destruct (Nat.ltb_spec (due i + sum (fun j => start j + d j) n) (start j + d j)); [lia|].
  rewrite !andb_false_r. auto.
Qed.

Theorem strict_list_on_servers_exists : exists server start,
  strict_list (confined_blocked n M c g server) start /\ server_has_room c server start /\
  forall i, i < n -> server i < M.
Proof.
  assert (H : forall K, exists server start, forall i, i < n -> key i < K ->
    may_start server start i (start i) (server i) /\ forall t q, t < start i -> ~ may_start server start i t q).
  { induction K as [|K [server [start IH]]]; [exists (fun _ => 0), (fun _ => 0); lia|].
    destruct (search (fun i => key i = K) n) as [[i [Hi Ki]]|F].
    - intros i. destruct (Nat.eq_dec (key i) K); auto.
    - destruct (least (fun t => exists q, may_start server start i t q) _ (may_start_dec server start i)
                  (may_start_at_the_end server start i Hi)) as [t0 [[q0 T1] T2]].
      exists (fun j => if j =? i then q0 else server j), (fun j => if j =? i then t0 else start j).
      assert (E : forall k, key k <= K -> forall j, j < n -> key j < key k ->
                  start j = (if j =? i then t0 else start j) /\ server j = if j =? i then q0 else server j).
      { intros k Kk j Hj Kj. destruct (Nat.eqb_spec j i); auto. subst. lia. }
      assert (E' : forall k, key k <= K -> forall j, j < n -> key j < key k ->
                  (if j =? i then t0 else start j) = start j /\ (if j =? i then q0 else server j) = server j).
      { intros k Kk j Hj Kj. destruct (E k Kk j Hj Kj). auto. }
      intros k Hk Kk. destruct (Nat.eqb_spec k i) as [->|Ne].
      + split; [eapply may_start_ext; [|exact T1]; apply E; lia|].
        intros t q Ht A. apply (T2 t Ht). exists q. eapply may_start_ext; [|exact A]. apply E'. lia.
      + assert (key k < K) by (assert (key k <> K) by (intros X; apply Ne, key_inj; auto; lia); lia).
        destruct (IH k Hk H) as [A B]. split.
        * eapply may_start_ext; [|exact A]. apply E. lia.
        * intros t q Ht A'. apply (B t q Ht). eapply may_start_ext; [|exact A']. apply E'. lia.
    - exists server, start. intros k Hk Kk. apply IH; auto. specialize (F k Hk). lia. }
  destruct (H (S (sum key n))) as [server [start L]]. exists server, start.
  assert (L' : forall i, i < n -> may_start server start i (start i) (server i) /\
                                  forall t q, t < start i -> ~ may_start server start i t q).
  { intros i Hi. apply L; auto. pose proof (sum_term key n i Hi). lia. }
  split; [|split].
  - intros i Hi. destruct (L' i Hi) as [[A [B [C D]]] Least]. split; [split; auto|]. split.
    + intros Q. specialize (Q (server i) C). lia.
    + intros t [_ [T T']] q Hq. destruct (Nat.lt_ge_cases c (used_on n g server (ahead start i t) q + g i)); auto.
      exfalso. apply (Least t q); [lia|]. split; [lia|]. split; auto.
  - intros i Hi. apply (L' i Hi).
  - intros i Hi. apply (L' i Hi).
Qed.
End Construct.

(* A pool is one server. *)
Theorem strict_list_exists G : (forall j, j < n -> g j <= G) -> exists start, strict_list (pool_blocked n G g) start.
Proof.
  intros g_G. destruct (strict_list_on_servers_exists 1 G Nat.lt_0_1 g_G) as [server [start [L [_ V]]]].
  exists start.
  assert (E : forall S, used_on n g server S 0 = busy n g S).
  { intros S. apply sum_ext. intros j Hj. specialize (V j Hj). replace (server j) with 0 by lia.
    rewrite Nat.eqb_refl, andb_true_r. auto. }
  intros i Hi. destruct (L i Hi) as [A [B C]]. split; auto. split.
  - intros Q. apply B. intros q Hq. replace q with 0 by lia. rewrite E. exact Q.
  - intros t T. specialize (C t T 0 Nat.lt_0_1). rewrite E in C. exact C.
Qed.
End Strict.
