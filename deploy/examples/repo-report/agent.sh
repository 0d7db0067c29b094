#!/bin/sh
# Writes report.md: how many files and lines, of which kinds, the largest files, what is to do.
# Progress goes to stderr, which becomes the job's log; the last line on stdout is the answer.
set -eu
export LC_ALL=C

question=$(cat)
say() { printf '%s\n' "$*" >&2; }
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT

say "asked: $question"
say "looking for files"
find . -type f ! -path ./report.md | sort >"$lists/files"
files=$(wc -l <"$lists/files" | tr -d ' ')
say "found $files files"
if [ "$files" -eq 0 ]; then
    say "the working directory is empty: give it one with --workdir.base-workdir"
    exit 1
fi

say "counting lines"
# One wc for many files; its lines are "count ./path", a total for each batch left out.
tr '\n' '\0' <"$lists/files" | xargs -0 wc -l /dev/null | sed 's/^ *//' |
    grep -v -e '^[0-9]* total$' -e '^0 /dev/null$' >"$lists/lines"
lines=$(awk '{ sum += $1 } END { printf "%d", sum }' "$lists/lines")
say "counted $lines lines"

say "grouping by extension"
awk '
    {
        count = $1; sub(/^[0-9]+ /, ""); name = $0; sub(/.*\//, "", name)
        kind = "(none)"
        if (match(name, /.\.[^.]+$/)) { kind = name; sub(/.*\./, "", kind) }
        files[kind]++; lines[kind] += count
    }
    END { for (kind in files) printf "%d\t%d\t%s\n", files[kind], lines[kind], kind }
' "$lists/lines" | sort -k1,1nr -k3,3 >"$lists/kinds"

say "finding the largest files"
tr '\n' '\0' <"$lists/files" | xargs -0 wc -c /dev/null | sed 's/^ *//' |
    grep -v -e '^[0-9]* total$' -e '^0 /dev/null$' | sort -k1,1nr -k2 | head -n 10 >"$lists/large"

say "looking for what is to do"
tr '\n' '\0' <"$lists/files" | xargs -0 grep -nI -w -e TODO -e FIXME /dev/null >"$lists/todo" || true
todo=$(wc -l <"$lists/todo" | tr -d ' ')
say "found $todo lines with TODO or FIXME"

{
    printf '# Report\n\n'
    printf -- '- files: %s\n- lines: %s\n- lines with TODO or FIXME: %s\n\n' "$files" "$lines" "$todo"
    printf '## By extension\n\n| extension | files | lines |\n| --- | ---: | ---: |\n'
    awk -F '\t' '{ printf "| %s | %d | %d |\n", $3, $1, $2 }' "$lists/kinds"
    printf '\n## The ten largest files\n\n| file | bytes |\n| --- | ---: |\n'
    awk '{ bytes = $1; sub(/^[0-9]+ \.\//, ""); printf "| %s | %d |\n", $0, bytes }' "$lists/large"
    printf '\n## To do\n\n'
    if [ "$todo" -eq 0 ]; then
        printf 'Nothing is marked.\n'
    else
        head -n 100 "$lists/todo" | cut -c 1-200 | sed 's/^\.\//- /'
    fi
} >report.md

say "wrote report.md"
printf '%s files with %s lines; see report.md\n' "$files" "$lines"
