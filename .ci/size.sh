#!/bin/sh
# No Rust file but tests may have more than 500 lines; those above 400 are worth a second look.
set -eu
git ls-files --cached --others --exclude-standard '*.rs' |
    grep -v -e '/tests\.rs$' -e '/tests/' -e '^tests/' |
    while read -r file; do
        [ -f "$file" ] && printf '%s %s\n' "$(wc -l <"$file")" "$file"
    done | sort -rn | awk '
        $1 > 500 { print "size: " $2 " has " $1 " lines, 500 is the most"; bad = 1 }
        $1 > 400 && $1 <= 500 { print "size: " $2 " has " $1 " lines; look twice" }
        { files++; lines += $1 }
        END { print "size: " files " files, " lines " lines without tests"; exit bad }'
