#!/bin/sh
# Reads a question on stdin, prints the number. Understands + - * / x × ÷ and the usual words,
# and works from left to right, as a pocket calculator does.
set -eu

tr '\n' ' ' | LC_ALL=C awk '
    function fail(why) { print "calculator: " why > "/dev/stderr"; failed = 1; exit 1 }
    {
        text = tolower($0)
        gsub(/×/, " * ", text); gsub(/÷/, " / ", text); gsub(/−/, " - ", text)
        gsub(/multiplied by|times/, " * ", text)
        gsub(/divided by|over/, " / ", text)
        gsub(/plus|added to/, " + ", text)
        gsub(/minus|less/, " - ", text)
        text = joined(text)
        gsub(/[^0-9.+*\/ -]/, " ", text)
        count = split(text, words, /[ ]+/)
        for (i = 1; i <= count; i++) {
            word = words[i]
            sub(/\.+$/, "", word)
            if (word ~ /^-?([0-9]+(\.[0-9]+)?|\.[0-9]+)$/) number(word + 0)
            else if (word ~ /^[-+*\/]$/ && numbers > 0 && operator == "") operator = word
        }
        if (numbers < 2) fail("no arithmetic in: " $0)
        if (operator != "") fail("a number is missing at the end of: " $0)
        if (value == int(value)) printf "%.0f\n", value; else printf "%.10g\n", value
    }
    # 6*7, 6x7: operators between digits need no spaces.
    function joined(text,    at) {
        while (match(text, /[0-9) ]x *[0-9]/) || match(text, /[0-9][+*\/-] *[0-9]/)) {
            at = RSTART + 1
            sign = substr(text, at, 1)
            text = substr(text, 1, at - 1) " " (sign == "x" ? "*" : sign) " " substr(text, at + 1)
        }
        return text
    }
    function number(n) {
        if (numbers == 0) value = n
        else if (operator == "+") value += n
        else if (operator == "-") value -= n
        else if (operator == "*") value *= n
        else if (operator == "/") { if (n == 0) fail("division by zero"); value /= n }
        else if (n < 0) value += n
        else fail("no operator before " n)
        operator = ""
        numbers++
    }
    END { exit failed }
'
