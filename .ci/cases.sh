#!/bin/sh
# One row a test of each field case: case, test, result. A case without a test, or with one that
# failed or was left out, fails. Where the list as it was handed over is at hand, the two are
# compared first.
set -eu
list=tests/field-cases.txt
handed=${ERRAND_FIELD_CASES:-../shared/spec/field-cases.md}

ids() { sed -n 's/^\([a-z][0-9]*\) .*/\1/p' "$list"; }

if [ -f "$handed" ]; then
    sections=$(ids | cut -c1 | sort -u | tr -d '\n')
    missing=$(grep -oiE "^\*\*FC-[$sections][0-9]+" "$handed" | sed 's/.*-//' | tr 'A-Z' 'a-z' |
        while read -r id; do ids | grep -qx "$id" || printf '%s ' "$id"; done)
    [ -z "$missing" ] || { echo "cases: $list lacks $missing" >&2; exit 1; }
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/errand-cases.XXXXXX")
trap 'rm -rf "$work"' EXIT
pattern=$(ids | paste -sd'|')
cargo build --workspace --bins
# Its own verdict is read from the lines: a case that was left out is no failure to nextest.
cargo nextest run --workspace --no-fail-fast --color never --status-level all \
    -E "test(/(^|::)case_($pattern)_/)" 2>&1 | tee "$work/run" >&2 || true

awk -v list="$list" '
    FILENAME == list {
        if ($0 ~ /^[a-z]/) { order[++n] = $1; waits[$1] = $2 == "waits:" }
        next
    }
    # The last word on a test counts: a repeated line says the same.
    $1 ~ /^(PASS|LEAK|FAIL|TIMEOUT|ABORT|SIGKILL|SIGSEGV|SKIP|LEAK-FAIL)$/ {
        test = $NF
        is_known = test in result
        # One test may do what several cases say.
        for (rest = test; match(rest, /case_[a-z][0-9]+_/); rest = substr(rest, RSTART + RLENGTH)) {
            id = substr(rest, RSTART + 5, RLENGTH - 6)
            if (!is_known) tests[id] = tests[id] " " test
            result[test] = $1 == "PASS" ? "passed" : $1 == "SKIP" ? "left out" : "failed"
        }
    }
    END {
        for (i = 1; i <= n; i++) {
            id = order[i]
            m = split(tests[id], named, " ")
            if (m == 0) {
                print id "\t-\t" (waits[id] ? "waits" : "missing")
                if (waits[id]) waiting++; else bad++
            } else covered++
            for (j = 1; j <= m; j++) {
                print id "\t" named[j] "\t" result[named[j]]
                if (result[named[j]] != "passed") bad++
            }
        }
        print n " cases, " covered " with tests, " waiting + 0 " wait, " bad + 0 " rows are not as they should be" > "/dev/stderr"
        exit bad > 0
    }' "$list" "$work/run" >"$work/table" || status=$?
printf 'case\ttest\tresult\n' | cat - "$work/table" |
    awk -F '\t' '{ printf "%-5s %-90s %s\n", $1, $2, $3 }'
exit "${status:-0}"
