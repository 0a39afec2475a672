#!/bin/sh
# Prints the table of theorems; fails on an axiom, a proof left open, or a theorem that is cited but not there.
# theorems.log holds what Coq printed for each `Print Assumptions` of Theorems.v, in order. A theorem is cited as
# [`name`](File.v), in README.md and theorems.md, or as [`name`](proofs/File.v) in the README.md of the project.
set -eu
cd "$(dirname "$0")"
fail() { echo "proofs: $*" >&2; exit 1; }

if grep -nE '(^|[^[:alnum:]_])(Admitted|admit|Abort|Axiom|Axioms|Parameter|Parameters|Conjecture|bypass_check)([^[:alnum:]_]|$)' \
    ./*.v extract/*.v; then
    fail "a proof is left open or something is assumed"
fi
listed=$(sed -n 's/^Print Assumptions \([a-z_]*\)\..*/\1/p' Theorems.v)
count=$(echo "$listed" | wc -l)
closed=$(grep -c '^Closed under the global context$' theorems.log || true)
if [ "$(wc -l < theorems.log)" -ne "$closed" ]; then
    cat theorems.log >&2
    fail "a theorem rests on an axiom"
fi
[ "$count" -eq "$closed" ] || fail "$count theorems are listed, $closed are closed"

for page in README.md theorems.md ../README.md; do
    [ -f "$page" ] || continue
    grep -oE '\[`[a-z_]+`\]\((proofs/)?[A-Za-z]+\.v\)' "$page" | sed -E 's/\[`(.*)`\]\((proofs\/)?(.*)\)/\1 \3/' | sort -u > cited.tmp
    while read -r name file; do
        echo "$listed" | grep -qx "$name" || fail "$page cites $name, which Theorems.v does not list"
        grep -qE "^(Theorem|Lemma|Example) $name( |$)" "$file" || fail "$page cites $name in $file, where it is not"
    done < cited.tmp
    rm -f cited.tmp
done

for name in $listed; do
    file=$(grep -lE "^(Theorem|Lemma|Example) $name( |$)" ./*.v | head -n 1)
    claim=$(sed -n "s/^Print Assumptions $name\. (\* \(.*\) \*)/\1/p" Theorems.v)
    printf '%-40s %-19s %s\n' "$name" "${file#./}" "$claim"
done
echo "$count theorems, no axioms, nothing admitted"
