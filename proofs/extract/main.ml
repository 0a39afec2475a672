(* Reads one certificate a line, and answers each with a line. Numbers are natural and apart by blanks.

   price G den T v_0 .. v_(T-1) n r_0 g_0 p_0 ..     ->  the bound on the sum of completion times, times den
   options G den T v_0 .. v_(T-1) n  r_0 k_0 g p penalty (k_0 times) ..    ->  the same, jobs with k >= 1 options
   tree G target n r_0 g_0 p_0 .. TREE               ->  yes or no: the tree proves that the sum is at least target
     where TREE is   leaf den T v_0 .. v_(T-1)   or   split j s TREE TREE   (job j starts by s, or after)

   Malformed lines and overflows answer "error: ..."; they are never a yes. *)

exception Malformed of string

let words line = ref (List.filter (fun w -> w <> "") (String.split_on_char ' ' line))

let word input =
  match !input with
  | [] -> raise (Malformed "line ends early")
  | first :: rest -> input := rest; first

let is_digit c = '0' <= c && c <= '9'

let number input =
  let w = word input in
  if not (String.for_all is_digit w) then raise (Malformed ("not a natural number: " ^ w));
  match int_of_string_opt ("0u" ^ w) with
  | Some k when k >= 0 && (String.length w < 19) -> k
  | _ -> raise Number.Overflow

let numbers input k = List.init k (fun _ -> number input)
let at values = let a = Array.of_list values in fun i -> if i < Array.length a then a.(i) else 0
let ends input = if !input <> [] then raise (Malformed ("unexpected: " ^ List.hd !input))

let jobs input =
  let n = number input in
  let rows = List.init n (fun _ -> let r = number input in let g = number input in let p = number input in (r, g, p)) in
  let column f = at (List.map f rows) in
  (n, column (fun (r, _, _) -> r), column (fun (_, g, _) -> g), column (fun (_, _, p) -> p))

let prices input =
  let horizon = number input in
  (horizon, numbers input horizon)

let bound gpus horizon v total = string_of_int (total - Number.mul gpus (Checkers.sum v horizon))

let price input =
  let gpus = number input in
  let den = number input in
  let horizon, values = prices input in
  let n, r, g, p = jobs input in
  ends input;
  let v = at values in
  bound gpus horizon v (Checkers.price_sum n horizon den r g p v)

let options input =
  let gpus = number input in
  let den = number input in
  let horizon, values = prices input in
  let n = number input in
  let job _ =
    let r = number input in
    let k = number input in
    if k = 0 then raise (Malformed "a job without options");
    let rows = List.init k (fun _ -> let g = number input in let p = number input in let c = number input in (g, p, c)) in
    (r, k - 1, at (List.map (fun (g, _, _) -> g) rows), at (List.map (fun (_, p, _) -> p) rows),
     at (List.map (fun (_, _, c) -> c) rows)) in
  let rows = Array.init n job in
  ends input;
  let v = at values in
  let r j = let (x, _, _, _, _) = rows.(j) in x and last j = let (_, x, _, _, _) = rows.(j) in x in
  let g j = let (_, _, x, _, _) = rows.(j) in x and p j = let (_, _, _, x, _) = rows.(j) in x in
  let penalty j = let (_, _, _, _, x) = rows.(j) in x in
  bound gpus horizon v (Checkers.price_sum_with_options n horizon den r last g p penalty v)

let rec certificate input =
  match word input with
  | "leaf" ->
      let den = number input in
      let _, values = prices input in
      Checkers.Leaf (values, den)
  | "split" ->
      let j = number input in
      let s = number input in
      let left = certificate input in
      let right = certificate input in
      Checkers.Split (j, s, left, right)
  | other -> raise (Malformed ("not leaf or split: " ^ other))

let tree input =
  let gpus = number input in
  let target = number input in
  let n, r, g, p = jobs input in
  let root = certificate input in
  ends input;
  if Checkers.certified n gpus target r g p root then "yes" else "no"

let answer line =
  let input = words line in
  try
    match word input with
    | "price" -> price input
    | "options" -> options input
    | "tree" -> tree input
    | other -> raise (Malformed ("not price, options or tree: " ^ other))
  with
  | Malformed problem -> "error: " ^ problem
  | Number.Overflow -> "error: overflow"
  | Stack_overflow -> "error: too deep"

let () =
  try
    while true do
      print_endline (answer (input_line stdin))
    done
  with End_of_file -> ()
