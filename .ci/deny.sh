#!/bin/sh
# Licences, sources, duplicates and who may use what, from deny.toml; then known vulnerabilities,
# for which cargo-deny wants a database that it fetches.
set -eu
cargo deny --workspace --log-level error check bans licenses sources
db=${CARGO_HOME:-$HOME/.cargo}/advisory-dbs
if timeout 60 cargo deny --workspace --log-level error fetch db 2>/dev/null; then
    cargo deny --workspace --log-level error check advisories
elif ls "$db"/*/.git/FETCH_HEAD >/dev/null 2>&1; then
    echo "deny: the advisory database cannot be fetched; the last one is used" >&2
    cargo deny --workspace --offline --log-level error check advisories
else
    echo "deny: the advisory database cannot be fetched and there is none here: advisories were NOT checked" >&2
fi
