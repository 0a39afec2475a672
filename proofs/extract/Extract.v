(* The checkers of OptimalityTree.v, PointwiseCheck.v and ScheduleCheck.v as OCaml.

   Numbers become OCaml integers with checked arithmetic (number.ml): an overflow raises, it never yields a wrong answer.
   Every operation of the checkers is mapped; Nat.min and Nat.max in particular would else be extracted as recursions of unary
   depth. This mapping, the compiler and main.ml are trusted, not proved. *)
From Coq Require Import Extraction ExtrOcamlBasic Arith List.
From Frostline Require Import OptimalityTree PointwiseCheck ScheduleCheck.

Extract Inductive nat => "int" ["0" "Number.succ"]
  "(fun zero succ n -> if n = 0 then zero () else succ (n - 1))".
Extract Inlined Constant Init.Nat.add => "Number.add".
Extract Inlined Constant Init.Nat.mul => "Number.mul".
Extract Inlined Constant Init.Nat.sub => "Number.sub".
Extract Inlined Constant Nat.min => "Number.min".
Extract Inlined Constant Nat.max => "Number.max".
Extract Inlined Constant Nat.eqb => "Number.equal".
Extract Inlined Constant Nat.leb => "Number.less_or_equal".
Extract Inlined Constant Nat.ltb => "Number.less".

Extraction "checkers.ml" certified last_certified well_formed pointwise_certified schedule_check.
