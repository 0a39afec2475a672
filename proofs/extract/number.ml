(* Natural numbers as machine integers that never wrap around. *)

exception Overflow

let positive c = if c < 0 then raise Overflow else c
let succ a = positive (a + 1)
let add a b = positive (a + b)
let mul a b = if a <> 0 && b > max_int / a then raise Overflow else a * b
let sub a b = if a > b then a - b else 0
let min (a : int) b = if a < b then a else b
let max (a : int) b = if a < b then b else a
let equal (a : int) b = a = b
let less_or_equal (a : int) b = a <= b
let less (a : int) b = a < b
