(* Certificates of lower bounds, up to proofs that no schedule is better.

   A certificate is a tree. A split says that a job starts by an instant, or that it starts later. A leaf proves the bound by
   prices. A node with narrower windows proves it by prices for the schedules in which one of the jobs starts outside its own, and
   goes on with the others. A branch is empty if a job has no start left in it. If certified accepts a tree for a target, no
   feasible schedule without preemption has a smaller weighted sum of completion times and penalties (tree_certificate_sound); nor
   has one that knows finer instants, where jobs may be later and longer than they are stated to be (rounded_certificate_sound).
   If last_certified does, none completes its last job before the target (last_certificate_sound).

   Prices are constant over segments of time. They are per GPU, or for each option of each job. What jobs that fit side by side can
   pay at once is a knapsack: of widths alone for prices per GPU, since these jobs may never fill the cluster; of the options that
   may run in the segment, else. *)
From Coq Require Import Arith Lia Bool List.
Import ListNotations.
From Frostline Require Import Finite VirtualMachine Schrage Relaxation Knapsack Prices.

(* Prices in a segment: of a GPU; or for each job, of its options. *)
Inductive column :=
| PerGpu (price : nat)
| PerOption (rows : list (list nat)).

(* Lengths of segments, from slot 0 on, and the prices in them. *)
Definition price_table := list (nat * column).

Inductive cert :=
| Leaf (den : nat) (prices : price_table)
| Split (j s : nat) (by_then later : cert)
| Narrow (den : nat) (prices : price_table) (windows : list (nat * (nat * option nat))) (rest : cert)
| Empty.

Definition upd {A} (f : nat -> A) (j : nat) (a : A) : nat -> A := fun i => if i =? j then a else f i.
Definition below (s : nat) (hi : option nat) : bool :=
  match hi with Some h => s <=? h | None => true end.
Definition earlier (s : nat) (hi : option nat) : nat :=
  match hi with Some h => Nat.min h s | None => s end.

(* How far past lo the starts of a window have to be looked at, if nothing is paid from T on. *)
Definition looks (T lo : nat) (hi : option nat) : nat :=
  match hi with Some h => Nat.min (h - lo) (T - lo) | None => T - lo end.

Fixpoint any (f : nat -> bool) (m : nat) : bool :=
  match m with 0 => false | S m' => f m' || any f m' end.

Fixpoint column_at (prices : price_table) (t : nat) : column :=
  match prices with
  | [] => PerGpu 0
  | (len, c) :: rest => if t <? len then c else column_at rest (t - len)
  end.

Fixpoint horizon (prices : price_table) : nat :=
  match prices with [] => 0 | (len, _) :: rest => len + horizon rest end.

(* What a window has before and after another one. *)
Definition outside (lo : nat) (hi : option nat) (first : nat) (until : option nat) : list (nat * option nat) :=
  (if lo <? first then [(lo, Some (earlier (first - 1) hi))] else []) ++
  match until with
  | Some l => if below (S l) hi then [(Nat.max (S l) lo, hi)] else []
  | None => []
  end.

Section Tree.
Variables (n G target : nat) (weight last : nat -> nat) (g p penalty : nat -> nat -> nat).

(* ---------- the checker ---------- *)

Definition pays (c : column) (j o : nat) : nat :=
  match c with PerGpu price => g j o * price | PerOption rows => nth o (nth j rows []) 0 end.

Definition options (j : nat) (keep : nat -> bool) : list nat := filter keep (seq 0 (S (last j))).

(* Most GPUs that jobs can hold at once; a job counts once for each width that it has. *)
Definition new_width (j o : nat) : bool := negb (any (fun i => g j i =? g j o) o).
Definition reach : nat := most (fun j => map (fun o => (g j o, g j o)) (options j (new_width j))) n G.

(* Whether a job cannot run in slots b, ..., e - 1. *)
Definition idle (lo : nat) (hi : option nat) (p b e : nat) : bool :=
  (e <=? lo) || match hi with Some h => h + p <=? b | None => false end.

Definition charge (lo : nat -> nat) (hi : nat -> option nat) (b e : nat) (c : column) : nat :=
  match c with
  | PerGpu price => reach * price
  | PerOption _ =>
      most (fun j => map (fun o => (g j o, pays c j o)) (options j (fun o => negb (idle (lo j) (hi j) (p j o) b e)))) n G
  end.

Fixpoint total_charge (lo : nat -> nat) (hi : nat -> option nat) (b : nat) (prices : price_table) : nat :=
  match prices with
  | [] => 0
  | (len, c) :: rest => len * charge lo hi b (b + len) c + total_charge lo hi (b + len) rest
  end.

(* The least over the starts from lo on, up to hi; hi itself counts even if it is before lo. *)
Definition least_cost (cost : nat -> nat) (lo : nat) (hi : option nat) (T : nat) : nat :=
  let least := min_from cost lo (looks T lo hi) in
  match hi with Some h => Nat.min (cost h) least | None => least end.

Definition job_cost (den : nat) (prices : price_table) (lo : nat) (hi : option nat) (j : nat) : nat :=
  min_upto (fun o => den * penalty j o
    + least_cost (start_cost den (weight j) (p j o) (fun t => pays (column_at prices t) j o)) lo hi (horizon prices)) (last j).

(* Whether prices prove the target for starts in windows; the charge is that of wider ones. *)
Definition proves (den : nat) (prices : price_table) (wide_lo : nat -> nat) (wide_hi : nat -> option nat)
  (lo : nat -> nat) (hi : nat -> option nat) : bool :=
  (0 <? den) &&
  (den * target + total_charge wide_lo wide_hi 0 prices <? sum (fun j => job_cost den prices (lo j) (hi j) j) n + den).

Definition no_start (lo : nat -> nat) (hi : nat -> option nat) : bool :=
  any (fun j => negb (below (lo j) (hi j))) n.

Definition all_outside (lo : nat -> nat) (hi : nat -> option nat) (windows : list (nat * (nat * option nat))) :=
  flat_map (fun w => map (pair (fst w)) (outside (lo (fst w)) (hi (fst w)) (fst (snd w)) (snd (snd w)))) windows.

Definition set_lo (windows : list (nat * (nat * option nat))) (lo : nat -> nat) : nat -> nat :=
  fold_left (fun f w => upd f (fst w) (fst (snd w))) windows lo.
Definition set_hi (windows : list (nat * (nat * option nat))) (hi : nat -> option nat) : nat -> option nat :=
  fold_left (fun f w => upd f (fst w) (snd (snd w))) windows hi.

Fixpoint check (c : cert) (lo : nat -> nat) (hi : nat -> option nat) : bool :=
  match c with
  | Leaf den prices => negb (no_start lo hi) && proves den prices lo hi lo hi
  | Empty => no_start lo hi
  | Split j s by_then later =>
      (j <? n) && check by_then lo (upd hi j (Some (earlier s (hi j)))) && check later (upd lo j (Nat.max (lo j) (S s))) hi
  | Narrow den prices windows rest =>
      forallb (fun w => fst w <? n) windows &&
      match all_outside lo hi windows with
      | [] => proves den prices lo hi lo hi
      | parts => forallb (fun w => proves den prices lo hi (upd lo (fst w) (fst (snd w))) (upd hi (fst w) (snd (snd w)))) parts
      end &&
      check rest (set_lo windows lo) (set_hi windows hi)
  end.

(* ---------- what it accepts is proved ---------- *)

Variables (st choice : nat -> nat).
Hypothesis chosen : forall j, j < n -> choice j <= last j.

Let d (j : nat) : nat := p j (choice j).
Let held (j : nat) : nat := g j (choice j).
Let value : nat := sum (fun j => weight j * (st j + d j) + penalty j (choice j)) n.

Hypothesis cap : forall t, sum (fun j => if running st d t j then held j else 0) n <= G.

Definition inside (lo : nat -> nat) (hi : nat -> option nat) : Prop :=
  forall j, j < n -> lo j <= st j /\ below (st j) (hi j) = true.

Lemma any_true f m : any f m = true <-> exists j, j < m /\ f j = true.
Proof.
  induction m; simpl; [split; [discriminate|intros [j [H _]]; lia]|].
  rewrite orb_true_iff, IHm. split.
  - intros [H|[j [A B]]]; [exists m|exists j]; auto.
  - intros [j [A B]]. destruct (Nat.eq_dec j m) as [->|]; auto. right. exists j. split; auto. lia.
Qed.

Lemma in_options j o keep : In o (options j keep) <-> o <= last j /\ keep o = true.
Proof. unfold options. rewrite filter_In, in_seq. split; intros [A B]; split; auto; lia. Qed.

(* Every width of a job has a first option. *)
Lemma first_of_width j o : exists i, i <= o /\ g j i = g j o /\ new_width j i = true.
Proof.
  induction o as [o IH] using lt_wf_ind. destruct (new_width j o) eqn:E; [exists o; auto|].
  unfold new_width in E. apply negb_false_iff, any_true in E. destruct E as [i [A B]]. apply Nat.eqb_eq in B.
  destruct (IH i A) as [k [K1 [K2 K3]]]. exists k. repeat split; auto; [lia|congruence].
Qed.

Lemma reach_sound t : sum (fun j => if running st d t j then held j else 0) n <= reach.
Proof.
  apply (most_sound _ n G (running st d t) held held); auto. intros j Hj _.
  destruct (first_of_width j (choice j)) as [i [A [B C]]]. apply in_map_iff. exists i. unfold held.
  rewrite B. split; auto. apply in_options. split; auto. specialize (chosen j Hj). lia.
Qed.

Lemma not_idle lo hi j b e t : j < n -> inside lo hi -> b <= t < e -> running st d t j = true ->
  idle (lo j) (hi j) (d j) b e = false.
Proof.
  intros Hj I T R. destruct (I j Hj) as [A B]. apply running_spec in R. unfold idle, below in *.
  apply orb_false_iff. split; [apply Nat.leb_gt; lia|].
  destruct (hi j); auto. apply Nat.leb_le in B. apply Nat.leb_gt. lia.
Qed.

Lemma charge_sound lo hi b e c t : inside lo hi -> b <= t < e ->
  sum (fun j => if running st d t j then pays c j (choice j) else 0) n <= charge lo hi b e c.
Proof.
  intros I T. destruct c as [price|rows]; cbn [charge pays].
  - rewrite (sum_ext _ (fun j => price * (if running st d t j then held j else 0))).
    + rewrite sum_scal, Nat.mul_comm. apply Nat.mul_le_mono_r, reach_sound.
    + intros j _. unfold held. destruct (running st d t j); lia.
  - apply (most_sound _ n G (running st d t) held (fun j => pays (PerOption rows) j (choice j))); auto.
    intros j Hj R. apply in_map_iff. exists (choice j). split; auto. apply in_options. split; [auto|]. fold (d j).
    rewrite (not_idle lo hi j b e t Hj I T R). auto.
Qed.

Lemma column_beyond prices t : horizon prices <= t -> column_at prices t = PerGpu 0.
Proof.
  revert t. induction prices as [|[len c] rest IH]; intros t H; cbn [horizon column_at] in *; auto.
  destruct (Nat.ltb_spec t len); [lia|]. apply IH. lia.
Qed.

Lemma total_charge_sound lo hi prices b (f : nat -> column -> nat) :
  (forall e c t b, b <= t < e -> f t c <= charge lo hi b e c) ->
  sum (fun i => f (b + i) (column_at prices i)) (horizon prices) <= total_charge lo hi b prices.
Proof.
  intros A. revert b. induction prices as [|[len c] rest IH]; intros b; cbn [horizon total_charge]; auto.
  rewrite sum_app. apply Nat.add_le_mono.
  - rewrite <- sum_const. apply sum_le. intros i Hi. cbn [column_at].
    destruct (Nat.ltb_spec i len); [|lia]. apply A. lia.
  - etransitivity; [|apply IH]. apply Nat.eq_le_incl, sum_ext. intros i _. cbn [column_at].
    destruct (Nat.ltb_spec (len + i) len); [lia|]. f_equal; [lia|f_equal; lia].
Qed.

Lemma least_cost_le cost lo hi T : least_cost cost lo hi T <= min_from cost lo (looks T lo hi).
Proof. unfold least_cost. destruct hi; lia. Qed.

Lemma job_cost_least den prices lo hi j : j < n -> lo j <= st j -> below (st j) (hi j) = true ->
  job_cost den prices (lo j) (hi j) j
  <= den * penalty j (choice j)
     + start_cost den (weight j) (d j) (fun t => pays (column_at prices t) j (choice j)) (st j).
Proof.
  intros Hj A B. etransitivity; [apply (min_upto_le _ (last j) (choice j) (chosen j Hj))|].
  apply Nat.add_le_mono_l. fold (d j). etransitivity; [apply least_cost_le|].
  destruct (Nat.le_gt_cases (st j - lo j) (looks (horizon prices) (lo j) (hi j))) as [L|L].
  - pose proof (min_from_le (start_cost den (weight j) (d j) (fun t => pays (column_at prices t) j (choice j)))
      (lo j) _ _ L) as M. replace (lo j + (st j - lo j)) with (st j) in M by lia. auto.
  - assert (R : looks (horizon prices) (lo j) (hi j) = horizon prices - lo j).
    { unfold looks, below in *. destruct (hi j); [apply Nat.leb_le in B; lia|auto]. }
    rewrite R. apply start_cost_min; auto. intros t Ht. rewrite column_beyond by auto. simpl. lia.
Qed.

Lemma proves_sound den prices wide_lo wide_hi lo hi :
  proves den prices wide_lo wide_hi lo hi = true -> inside wide_lo wide_hi -> inside lo hi -> target <= value.
Proof.
  intros H W I. apply andb_prop in H. destruct H as [D H]. apply Nat.ltb_lt in D, H.
  set (pay := fun j t => pays (column_at prices t) j (choice j)).
  assert (C : sum (fun j => job_cost den prices (lo j) (hi j) j) n
              <= sum (fun j => den * penalty j (choice j)) n
                 + sum (fun j => start_cost den (weight j) (d j) (pay j) (st j)) n).
  { rewrite <- sum_plus. apply sum_le. intros j Hj. destruct (I j Hj). apply job_cost_least; auto. }
  pose proof (price_schedule n (horizon prices) den weight d st pay
    (fun t => sum (fun j => if running st d t j then pay j t else 0) n)) as S.
  specialize (S ltac:(intros; unfold pay; rewrite column_beyond by auto; simpl; lia) ltac:(auto)).
  pose proof (total_charge_sound wide_lo wide_hi prices 0
    (fun t c => sum (fun j => if running st d t j then pays c j (choice j) else 0) n)
    ltac:(intros; apply charge_sound; auto)) as T.
  cbn beta in T. unfold pay in S at 2. rewrite sum_scal in C.
  assert (V : value = sum (fun j => weight j * (st j + d j)) n + sum (fun j => penalty j (choice j)) n).
  { unfold value. apply sum_plus. }
  simpl in T. rewrite V. nia.
Qed.

Lemma inside_upd lo hi j l h : inside lo hi -> (j < n -> l <= st j /\ below (st j) h = true) ->
  inside (upd lo j l) (upd hi j h).
Proof.
  intros I A i Hi. unfold upd. destruct (Nat.eqb_spec i j) as [->|]; auto.
Qed.

Lemma upd_same {A} (f : nat -> A) j i : upd f j (f j) i = f i.
Proof. unfold upd. destruct (Nat.eqb_spec i j) as [->|]; auto. Qed.

Lemma inside_set windows lo hi : inside lo hi ->
  (forall w, In w windows -> fst w < n -> fst (snd w) <= st (fst w) /\ below (st (fst w)) (snd (snd w)) = true) ->
  inside (set_lo windows lo) (set_hi windows hi).
Proof.
  revert lo hi. induction windows as [|w rest IH]; intros lo hi I A; simpl; auto.
  apply IH; [|intros; apply A; auto; right; auto].
  apply inside_upd; auto. intros H. apply A; auto. left. auto.
Qed.

Lemma earlier_spec s hi x : below x (Some (earlier s hi)) = true <-> x <= s /\ below x hi = true.
Proof. unfold below, earlier. destruct hi; rewrite !Nat.leb_le; lia. Qed.

(* A start that is in a window and not in another is in one of the parts outside. *)
Lemma outside_covers lo hi first until s : lo <= s -> below s hi = true -> ~ (first <= s /\ below s until = true) ->
  exists part, In part (outside lo hi first until) /\ fst part <= s /\ below s (snd part) = true.
Proof.
  intros A B C. unfold outside. destruct (Nat.lt_ge_cases s first) as [L|L].
  - exists (lo, Some (earlier (first - 1) hi)). split; [|split; auto].
    + apply in_or_app. left. destruct (Nat.ltb_spec lo first); [left; auto|lia].
    + apply earlier_spec. split; auto. lia.
  - destruct until as [l|]; [|exfalso; apply C; auto].
    assert (l < s) by (apply Nat.nle_gt; intros X; apply C; split; auto; apply Nat.leb_le; auto).
    assert (E : below (S l) hi = true).
    { unfold below in *. destruct hi; auto. apply Nat.leb_le in B. apply Nat.leb_le. lia. }
    rewrite E. exists (Nat.max (S l) lo, hi). split; [apply in_or_app; right; left; auto|]. cbn [fst snd]. split; auto. lia.
Qed.

Lemma part_sound den prices lo hi windows w part :
  inside lo hi -> In w windows -> fst w < n ->
  In part (outside (lo (fst w)) (hi (fst w)) (fst (snd w)) (snd (snd w))) ->
  fst part <= st (fst w) -> below (st (fst w)) (snd part) = true ->
  match all_outside lo hi windows with
  | [] => proves den prices lo hi lo hi
  | parts => forallb (fun w => proves den prices lo hi (upd lo (fst w) (fst (snd w))) (upd hi (fst w) (snd (snd w)))) parts
  end = true -> target <= value.
Proof.
  intros I Hw Hn Hp L U H.
  assert (M : In (fst w, part) (all_outside lo hi windows)).
  { apply in_flat_map. exists w. split; auto. apply in_map. auto. }
  destruct (all_outside lo hi windows) as [|x parts]; [contradiction|].
  pose proof (proj1 (forallb_forall _ _) H (fst w, part) M) as P. cbn [fst snd] in P.
  apply (proves_sound _ _ _ _ _ _ P I). apply inside_upd; auto.
Qed.

Lemma window_inside_or_not w : (fst (snd w) <= st (fst w) /\ below (st (fst w)) (snd (snd w)) = true) \/
  ~ (fst (snd w) <= st (fst w) /\ below (st (fst w)) (snd (snd w)) = true : Prop).
Proof.
  destruct (Nat.le_gt_cases (fst (snd w)) (st (fst w))); [|right; lia].
  destruct (below (st (fst w)) (snd (snd w))); [left|right]; intuition discriminate.
Qed.

Lemma windows_inside_or_not (windows : list (nat * (nat * option nat))) :
  (forall w, In w windows -> fst (snd w) <= st (fst w) /\ below (st (fst w)) (snd (snd w)) = true) \/
  (exists w, In w windows /\ ~ (fst (snd w) <= st (fst w) /\ below (st (fst w)) (snd (snd w)) = true)).
Proof.
  induction windows as [|w rest [A|[v [A B]]]]; [left; intros w []| |right; exists v; split; auto; right; auto].
  destruct (window_inside_or_not w) as [W|W]; [left|right; exists w; split; auto; left; auto].
  intros v [E|E]; [subst v|]; auto.
Qed.

Theorem check_sound c lo hi : check c lo hi = true -> inside lo hi -> target <= value.
Proof.
  revert lo hi. induction c as [den prices|j s a IHa b IHb|den prices windows rest IH|]; intros lo hi H I; cbn [check] in H.
  - apply andb_prop in H. destruct H as [_ H]. apply (proves_sound _ _ _ _ _ _ H I I).
  - apply andb_prop in H. destruct H as [H Hb]. apply andb_prop in H. destruct H as [Hj Ha]. apply Nat.ltb_lt in Hj.
    destruct (I j Hj) as [A B].
    destruct (Nat.le_gt_cases (st j) s) as [L|L].
    + apply (IHa _ _ Ha). intros i Hi. destruct (I i Hi) as [A' B']. split; auto.
      unfold upd. destruct (Nat.eqb_spec i j) as [->|]; auto. apply earlier_spec. auto.
    + apply (IHb _ _ Hb). intros i Hi. destruct (I i Hi) as [A' B']. split; auto.
      unfold upd. destruct (Nat.eqb_spec i j) as [->|]; auto. lia.
  - apply andb_prop in H. destruct H as [H Hr]. apply andb_prop in H. destruct H as [H Hp].
    rename H into Hn.
    destruct (windows_inside_or_not windows) as [W|[w [W1 W2]]].
    + apply (IH _ _ Hr). apply inside_set; auto.
    + pose proof (proj1 (forallb_forall _ _) Hn w W1) as N. apply Nat.ltb_lt in N.
      destruct (I _ N) as [A B].
      destruct (outside_covers _ _ _ _ _ A B W2) as [part [P1 [P2 P3]]].
      apply (part_sound den prices lo hi windows w part); auto.
  - apply any_true in H. destruct H as [j [Hj E]]. destruct (I j Hj) as [A B].
    exfalso. unfold below in *. destruct (hi j); [|discriminate].
    apply negb_true_iff, Nat.leb_gt in E. apply Nat.leb_le in B. lia.
Qed.
End Tree.

Fixpoint all (f : nat -> bool) (m : nat) : bool :=
  match m with 0 => true | S m' => f m' && all f m' end.

(* Weights are positive, and every option fits the cluster. *)
Definition well_formed (n G : nat) (weight last : nat -> nat) (g : nat -> nat -> nat) : bool :=
  all (fun j => (0 <? weight j) && all (fun o => (0 <? g j o) && (g j o <=? G)) (S (last j))) n.

Definition certified (n G target : nat) (r weight last : nat -> nat) (g p penalty : nat -> nat -> nat) (c : cert) : bool :=
  well_formed n G weight last g && check n G target weight last g p penalty c r (fun _ => None).

Theorem tree_certificate_sound n G target r weight last g p penalty c :
  certified n G target r weight last g p penalty c = true ->
  forall st choice : nat -> nat,
    (forall j, j < n -> choice j <= last j) ->
    (forall j, j < n -> r j <= st j) ->
    (forall t, sum (fun j => if running st (fun j => p j (choice j)) t j then g j (choice j) else 0) n <= G) ->
    target <= sum (fun j => weight j * (st j + p j (choice j)) + penalty j (choice j)) n.
Proof.
  intros H st choice C R A. apply andb_prop in H. destruct H as [_ H].
  apply (check_sound n G target weight last g p penalty st choice C A c r (fun _ => None) H).
  intros j Hj. split; auto.
Qed.

(* Instants m times as fine; jobs may be released later and last longer than stated. *)
Section Rounded.
Variables (n G m : nat) (r last : nat -> nat) (g p : nat -> nat -> nat) (st d choice : nat -> nat).
Hypothesis m_pos : 0 < m.
Hypothesis chosen : forall j, j < n -> choice j <= last j.
Hypothesis rounded : forall j, j < n -> m * r j <= st j /\ m * p j (choice j) <= d j.
Hypothesis cap : forall t, sum (fun j => if running st d t j then g j (choice j) else 0) n <= G.

Lemma rounded_start j : j < n -> r j <= st j / m /\ m * (st j / m + p j (choice j)) <= st j + d j.
Proof.
  intros Hj. destruct (rounded j Hj) as [A B]. split; [apply Nat.div_le_lower_bound; lia|].
  pose proof (Nat.mul_div_le (st j) m ltac:(lia)). lia.
Qed.

Lemma rounded_cap t :
  sum (fun j => if running (fun j => st j / m) (fun j => p j (choice j)) t j then g j (choice j) else 0) n <= G.
Proof.
  etransitivity; [|apply (cap (m * t + (m - 1)))]. apply sum_le. intros j Hj. destruct (rounded j Hj) as [_ L].
  destruct (running (fun j => st j / m) (fun j => p j (choice j)) t j) eqn:E; [|lia].
  rewrite (coarser_running m st d (fun j => p j (choice j)) t j m_pos L E). auto.
Qed.

Theorem rounded_certificate_sound target weight penalty c :
  certified n G target r weight last g p penalty c = true ->
  m * target <= sum (fun j => weight j * (st j + d j) + m * penalty j (choice j)) n.
Proof.
  intros H.
  pose proof (tree_certificate_sound _ _ _ _ _ _ _ _ _ _ H (fun j => st j / m) choice chosen
    (fun j Hj => proj1 (rounded_start j Hj)) rounded_cap) as T.
  etransitivity; [apply Nat.mul_le_mono_l, T|].
  rewrite <- sum_scal. apply sum_le. intros j Hj. destruct (rounded_start j Hj) as [_ L].
  pose proof (Nat.mul_le_mono_l _ _ (weight j) L). lia.
Qed.
End Rounded.

(* ---------- the last completion ---------- *)

(* If all jobs completed before T, they would start in time for it, and their total would be at most n * (T - 1). *)
Definition last_certified (n G T : nat) (r last : nat -> nat) (g p : nat -> nat -> nat) (c : cert) : bool :=
  well_formed n G (fun _ => 1) last g &&
  check n G (n * (T - 1) + 1) (fun _ => 1) last g p (fun _ _ => 0) c r (fun j => Some (T - 1 - min_upto (p j) (last j))).

Theorem last_certificate_sound n G T r last g p c :
  last_certified n G T r last g p c = true ->
  forall st choice : nat -> nat,
    (forall j, j < n -> choice j <= last j) ->
    (forall j, j < n -> r j <= st j) ->
    (forall t, sum (fun j => if running st (fun j => p j (choice j)) t j then g j (choice j) else 0) n <= G) ->
    exists j, j < n /\ T <= st j + p j (choice j).
Proof.
  intros H st choice C R A. apply andb_prop in H. destruct H as [_ H].
  destruct (search (fun j => T <= st j + p j (choice j)) n) as [F|F]; auto; [intros; lia|]. exfalso.
  pose proof (check_sound n G _ (fun _ => 1) last g p (fun _ _ => 0) st choice C A c r _ H) as S.
  assert (I : inside n st r (fun j => Some (T - 1 - min_upto (p j) (last j)))).
  { intros j Hj. split; [auto|]. apply Nat.leb_le. specialize (F j Hj).
    pose proof (min_upto_le (p j) (last j) (choice j) (C j Hj)). lia. }
  specialize (S I).
  assert (L : sum (fun j => 1 * (st j + p j (choice j)) + 0) n <= sum (fun _ => T - 1) n).
  { apply sum_le. intros j Hj. specialize (F j Hj). lia. }
  rewrite sum_const in L. lia.
Qed.

Theorem rounded_last_certificate_sound n G T r last g p c m :
  last_certified n G T r last g p c = true -> 0 < m ->
  forall st d choice : nat -> nat,
    (forall j, j < n -> choice j <= last j) ->
    (forall j, j < n -> m * r j <= st j /\ m * p j (choice j) <= d j) ->
    (forall t, sum (fun j => if running st d t j then g j (choice j) else 0) n <= G) ->
    exists j, j < n /\ m * T <= st j + d j.
Proof.
  intros H M st d choice C R A.
  destruct (last_certificate_sound n G T r last g p c H (fun j => st j / m) choice C) as [j [Hj L]].
  - intros j Hj. apply (rounded_start n m r p st d choice M R j Hj).
  - apply (rounded_cap n G m r g p st d choice M R A).
  - exists j. split; auto. destruct (rounded_start n m r p st d choice M R j Hj) as [_ Q].
    pose proof (Nat.mul_le_mono_l _ _ m L). lia.
Qed.

(* A certificate checked inside Coq: two 2-GPU jobs and a 1-GPU job on 2 GPUs. *)
Example tree_example :
  forall st : nat -> nat, (forall j, j < 3 -> 0 <= st j) ->
  (forall t, sum (fun j => if running st (fun j => nth j [1; 2; 3] 0) t j
                           then nth j [2; 2; 1] 0 else 0) 3 <= 2) ->
  10 <= sum (fun j => 1 * (st j + nth j [1; 2; 3] 0) + 0) 3.
Proof.
  intros st R A.
  apply (tree_certificate_sound 3 2 10 (fun _ => 0) (fun _ => 1) (fun _ => 0) (fun j _ => nth j [2; 2; 1] 0)
           (fun j _ => nth j [1; 2; 3] 0) (fun _ _ => 0)
           (Split 1 2 (Leaf 12 [(1, PerGpu 18); (2, PerGpu 12); (1, PerGpu 6)]) (Leaf 12 [(1, PerGpu 6)])))
    with (choice := fun _ => 0); auto.
Qed.
