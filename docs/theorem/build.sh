#!/usr/bin/env bash
# Compiles the proofs, prints what they assume, and builds the checker: build/theorem/checker.
set -euo pipefail
cd "$(dirname "$0")"
into=../../build/theorem
for tool in coqc ocamlfind; do
  command -v "$tool" > /dev/null || { echo "There is no $tool: apt-get install coq libzarith-ocaml-dev ocaml-findlib"; exit 1; }
done
mkdir -p "$into"
cp ./*.v main.ml "$into"
cd "$into"
for file in $(coqdep -sort -R . Lagrangian ./*.v); do
  echo "coqc ${file#./}"
  coqc -q -R . Lagrangian "$file" > "${file%.v}.log" || { cat "${file%.v}.log"; exit 1; }
done
# What each theorem assumes, in the order of Assumptions.v: nothing, neither axioms nor what was left unproved.
paste -d ' ' <(sed -n 's/^Print Assumptions \(.*\)\./\1:/p' Assumptions.v) Assumptions.log
if grep -v 'Closed under the global context' Assumptions.log; then echo "A theorem has assumptions."; exit 1; fi
ocamlfind ocamlopt -package zarith -linkpkg checker.mli checker.ml main.ml -o checker
echo "built build/theorem/checker"
