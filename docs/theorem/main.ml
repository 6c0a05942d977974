(* Reads proofs as plain text and prints a verdict for each. The verdict is the extracted checker's; what
   stands here, the parser, is not proved, so it is short and refuses whatever it does not know. See README.md. *)

open Checker

exception Wrong of string

let wrong why = raise (Wrong why)

(* Whole numbers and fractions: an optional sign and digits, then optionally / and digits. *)
let is_digits text = text <> "" && String.for_all (fun c -> '0' <= c && c <= '9') text

let whole_of text =
  let unsigned =
    if text <> "" && text.[0] = '-' then String.sub text 1 (String.length text - 1) else text in
  if is_digits unsigned then Big_int_Z.big_int_of_string text else wrong ("not a whole number: " ^ text)

let positive_of text =
  let k = whole_of text in
  if Big_int_Z.sign_big_int k > 0 then k else wrong ("not a positive number: " ^ text)

let number_of text =
  match String.split_on_char '/' text with
  | [n] -> { qnum = whole_of n; qden = Big_int_Z.unit_big_int }
  | [n; d] -> { qnum = whole_of n; qden = positive_of d }
  | _ -> wrong ("not a number: " ^ text)

let limit_of infinite text = if text = infinite then None else Some (number_of text)

(* All loops are tail calls: a line may have millions of words. *)
let take count read words =
  let rec more taken left words =
    if left = 0 then (List.rev taken, words)
    else match words with
      | word :: rest -> more (read word :: taken) (left - 1) rest
      | [] -> wrong (Printf.sprintf "a table has fewer costs than its length, %d" count) in
  more [] count words

let length_of text =
  if not (is_digits text) then wrong ("not a length: " ^ text);
  match int_of_string_opt text with
  | Some count -> count
  | None -> wrong ("a table cannot be as long as " ^ text)

let pieces_of words =
  let rec more found = function
    | [] -> List.rev found
    | "linear" :: w :: rest -> more (Linear (number_of w) :: found) rest
    | "square" :: w :: c :: rest -> more (Square (number_of w, number_of c) :: found) rest
    | "absolute" :: w :: c :: rest -> more (Absolute (number_of w, number_of c) :: found) rest
    | "table" :: first :: count :: rest ->
      let costs, rest = take (length_of count) number_of rest in
      more (Table (whole_of first, costs) :: found) rest
    | word :: _ -> wrong ("not a piece of an objective: " ^ word) in
  more [] words

let entries_of words =
  let rec all found = function
    | [] -> List.rev found
    | k :: a :: rest -> all ((positive_of k, number_of a) :: found) rest
    | [_] -> wrong "a row ends with half an entry" in
  all [] words

let variable_of = function
  | kind :: low :: high :: words ->
    let whole = match kind with "whole" -> true | "real" -> false | _ -> wrong ("not a kind: " ^ kind) in
    { lower = limit_of "-inf" low; upper = limit_of "inf" high; whole; pieces = pieces_of words }
  | _ -> wrong "a variable needs a kind and two bounds"

let row_of = function
  | low :: high :: words ->
    { least = limit_of "-inf" low; most = limit_of "inf" high; entries = entries_of words }
  | _ -> wrong "a row needs two sides"

let one_of = function [word] -> number_of word | _ -> wrong "one number is needed"

(* The file: a line "hierdp proofs 1", then problems, and lines of what was left out. *)

let line_number = ref 0

let next_line file =
  incr line_number;
  match input_line file with line -> Some line | exception End_of_file -> None

let words_of line = String.split_on_char ' ' line

(* All lines that begin with this word, and the line after them. *)
let lines_of file keyword read line =
  let rec more found line =
    match words_of line with
    | word :: words when word = keyword ->
      let item = read words in
      (match next_line file with
       | Some line -> more (item :: found) line
       | None -> wrong "the file ends within a problem")
    | _ -> (List.rev found, line) in
  more [] line

let problem_of file =
  match next_line file with
  | None -> wrong "the file ends within a problem"
  | Some line ->
    let variables, line = lines_of file "variable" variable_of line in
    let rows, line = lines_of file "row" row_of line in
    let values, line = lines_of file "value" one_of line in
    let prices, line = lines_of file "price" one_of line in
    if line <> "end" then wrong ("not a line of a problem: " ^ line);
    ({ variables; rows }, values, prices)

let shown q =
  let q = qred q in
  let n = Big_int_Z.string_of_big_int q.qnum and d = Big_int_Z.string_of_big_int q.qden in
  if d = "1" then n else n ^ "/" ^ d

let shown_bound = function Nothing -> "-inf" | Empty -> "inf" | At b -> shown b

let split_at_space line =
  match String.index_opt line ' ' with
  | Some at -> (String.sub line 0 at, String.sub line (at + 1) (String.length line - at - 1))
  | None -> (line, "")

let () =
  let proved = ref 0 and left = ref 0 and all = ref 0 in
  let say verdict cost bound name = Printf.printf "%s\t%s\t%s\t%s\n" verdict cost bound name in
  let judged name (program, values, prices) =
    incr all;
    match judge program values prices with
    | Proved (cost, bound) -> incr proved; say "proved" (shown cost) (shown_bound bound) name
    | Unproved (cost, bound) -> say "not proved" (shown cost) (shown_bound bound) name
    | Breaks_variable k -> say "not feasible" ("variable " ^ Big_int_Z.string_of_big_int k) "" name
    | Breaks_row k -> say "not feasible" ("row " ^ Big_int_Z.string_of_big_int k) "" name
    | Malformed -> say "malformed" "" "" name in
  let rec read file =
    match next_line file with
    | None -> ()
    | Some line ->
      (match split_at_space line with
       | "problem", name -> judged name (problem_of file)
       | "skipped", name -> incr left; say "skipped" "" "" name
       | _ -> wrong ("neither a problem nor skipped: " ^ line));
      read file in
  let path = match Sys.argv with
    | [| _; path |] -> path
    | _ -> prerr_endline "usage: checker FILE"; exit 2 in
  try
    let file = open_in_bin path in
    if next_line file <> Some "hierdp proofs 1" then wrong "the first line is not: hierdp proofs 1";
    read file;
    close_in file;
    if !all = 0 then Printf.printf "nothing proved: the file has no problem; %d skipped\n" !left
    else Printf.printf "%d of %d problems proved; %d skipped\n" !proved !all !left;
    exit (if !all > 0 && !proved = !all then 0 else 1)
  with
  | Wrong why -> Printf.eprintf "%s, line %d: %s\n" path !line_number why; exit 2
  | Stack_overflow | Out_of_memory ->
    Printf.eprintf "%s, line %d: this problem is too large for the memory of this process\n" path !line_number; exit 2
  | Sys_error why -> prerr_endline why; exit 2
