(* Reads one question a line, and answers each with a line. Numbers are natural and apart by blanks.

   certificate G target JOBS PROOF    ->  yes or no: the proof shows that no schedule has a smaller weighted total
   last G target JOBS TREE            ->  yes or no: the tree shows that none completes its last job before the target
     JOBS      n, then n times   release weight k, then k >= 1 times the options of the job   GPUs duration penalty
     PROOF     pointwise   or a tree
     tree      leaf PRICES   or   split j s TREE TREE (job j starts by s, or after)   or   empty
               or   narrow k (j first last, k times; - where there is no last start) PRICES TREE
     PRICES    gpu, width or option; den; k t_1 .. t_k; rows of k - 1 prices: one, or one for each width, or for each option

   schedule M c_1 .. c_M JOBS RUNS    ->  yes or no: the schedule is valid on servers of c GPUs
     JOBS      n, then n times   release GPUs duration, most servers
     RUNS      k, then k times   job start end m, then m times   server GPUs; each job must run once, on these servers

   Malformed lines and overflows answer "error: ..."; they are never a yes. *)

exception Malformed of string

let words line = ref (List.filter (fun w -> w <> "") (String.split_on_char ' ' line))

let word input =
  match !input with
  | [] -> raise (Malformed "line ends early")
  | first :: rest -> input := rest; first

let is_digit c = '0' <= c && c <= '9'

let number_of w =
  if not (String.for_all is_digit w) then raise (Malformed ("not a natural number: " ^ w));
  match int_of_string_opt ("0u" ^ w) with
  | Some k when k >= 0 && (String.length w < 19) -> k
  | _ -> raise Number.Overflow

let number input = number_of (word input)
let many input k read = List.init k (fun _ -> read input)
let counted input read = let k = number input in many input k read
let at none values = let a = Array.of_list values in fun i -> if i < Array.length a then a.(i) else none
let ends input = if !input <> [] then raise (Malformed ("unexpected: " ^ List.hd !input))

(* ---------- certificates ---------- *)

type job = { release : int; weight : int; options : (int * int * int) list }

let job input =
  let release = number input in
  let weight = number input in
  let options = counted input (fun input ->
    let g = number input in let p = number input in let penalty = number input in (g, p, penalty)) in
  if options = [] then raise (Malformed "a job without options");
  { release; weight; options }

let rec lengths = function
  | begins :: (until :: _ as rest) ->
      if begins >= until then raise (Malformed "breakpoints must ascend");
      (until - begins) :: lengths rest
  | _ -> []

(* Segments from slot 0 on, and the prices in them. *)
let prices jobs input =
  let by = word input in
  let den = number input in
  let times = counted input number in
  let spans = lengths times in
  if spans = [] then raise (Malformed "less than two breakpoints");
  let row input = Array.of_list (many input (List.length spans) number) in
  let all_widths = List.concat_map (fun job -> List.map (fun (g, _, _) -> g) job.options) jobs in
  let columns =
    match by with
    | "gpu" -> let only = row input in fun i -> Checkers.PerGpu only.(i)
    | "width" ->
        let rows = List.map (fun width -> (width, row input)) (List.sort_uniq compare all_widths) in
        fun i -> Checkers.PerOption (List.map (fun job -> List.map (fun (g, _, _) -> (List.assoc g rows).(i)) job.options) jobs)
    | "option" ->
        let rows = List.map (fun job -> List.map (fun _ -> row input) job.options) jobs in
        fun i -> Checkers.PerOption (List.map (List.map (fun row -> row.(i))) rows)
    | other -> raise (Malformed ("not gpu, width or option: " ^ other)) in
  (den, (List.hd times, Checkers.PerGpu 0) :: List.mapi (fun i span -> (span, columns i)) spans)

let window input =
  let j = number input in
  let first = number input in
  let last = match word input with "-" -> None | w -> Some (number_of w) in
  (j, (first, last))

let rec tree jobs input =
  match word input with
  | "leaf" -> let den, table = prices jobs input in Checkers.Leaf (den, table)
  | "empty" -> Checkers.Empty
  | "split" ->
      let j = number input in
      let s = number input in
      let by_then = tree jobs input in
      let later = tree jobs input in
      Checkers.Split (j, s, by_then, later)
  | "narrow" ->
      let windows = counted input window in
      let den, table = prices jobs input in
      let rest = tree jobs input in
      Checkers.Narrow (den, table, windows, rest)
  | other -> raise (Malformed ("not leaf, split, narrow or empty: " ^ other))

(* G, target, n, and columns: release, weight, last option; GPUs, duration and penalty of every option. *)
let problem input =
  let gpus = number input in
  let target = number input in
  let jobs = counted input job in
  let column f = at 0 (List.map f jobs) in
  let option f = let rows = at (fun _ -> 0) (List.map (fun job -> at 0 (List.map f job.options)) jobs) in fun j o -> rows j o in
  (gpus, target, jobs, column (fun job -> job.release), column (fun job -> job.weight),
   column (fun job -> List.length job.options - 1),
   option (fun (g, _, _) -> g), option (fun (_, p, _) -> p), option (fun (_, _, penalty) -> penalty))

let free job = job.weight = 1 && List.for_all (fun (_, _, penalty) -> penalty = 0) job.options

let certificate input =
  let gpus, target, jobs, release, weight, last, g, p, penalty = problem input in
  let n = List.length jobs in
  match !input with
  | "pointwise" :: rest ->
      input := rest;
      ends input;
      if not (List.for_all (fun job -> free job && List.length job.options = 1) jobs) then
        raise (Malformed "pointwise is for jobs without options, weights and penalties");
      let only column j = column j 0 in
      Checkers.well_formed n gpus weight last g && Checkers.pointwise_certified n gpus target release (only g) (only p)
  | _ ->
      let root = tree jobs input in
      ends input;
      Checkers.certified n gpus target release weight last g p penalty root

let last_completion input =
  let gpus, target, jobs, release, _, last, g, p, _ = problem input in
  let root = tree jobs input in
  ends input;
  if not (List.for_all free jobs) then raise (Malformed "a last completion is of jobs without weights and penalties");
  Checkers.last_certified (List.length jobs) gpus target release last g p root

(* ---------- schedules ---------- *)

let schedule input =
  let servers = counted input number in
  let rows = counted input (fun input -> many input 4 number) in
  let runs = counted input (fun input ->
    let j = number input in
    let start = number input in
    let finish = number input in
    let loads = counted input (fun input -> let q = number input in let gpus = number input in (q, gpus)) in
    (j, (start, finish, loads))) in
  ends input;
  let runs = List.sort compare runs and n = List.length rows in
  let column i = at 0 (List.map (fun row -> List.nth row i) rows) in
  let run f = at 0 (List.map (fun (_, x) -> f x) runs) in
  let on j q =
    if j >= n then 0 else let _, (_, _, loads) = List.nth runs j in
    List.fold_left (fun sum (server, gpus) -> if server = q then Number.add sum gpus else sum) 0 loads in
  List.map fst runs = List.init n Fun.id
  && List.for_all (fun (_, (_, _, loads)) -> List.for_all (fun (q, _) -> q < List.length servers) loads) runs
  && Checkers.schedule_check n (List.length servers) (at 0 servers) (column 0) (column 1) (column 2) (column 3)
       (run (fun (start, _, _) -> start)) (run (fun (_, finish, _) -> finish)) on

let answer line =
  let input = words line in
  let verdict yes = if yes then "yes" else "no" in
  try
    match word input with
    | "certificate" -> verdict (certificate input)
    | "last" -> verdict (last_completion input)
    | "schedule" -> verdict (schedule input)
    | other -> raise (Malformed ("not certificate, last or schedule: " ^ other))
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
