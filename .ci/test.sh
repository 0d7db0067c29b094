#!/bin/sh
# Every test that needs no credentials. ERRAND_WITHOUT_CLIENT, set by ./dev, says why the tests
# with the reference's own client cannot be run here; they are then named at the end.
set -eu
official='test(/^official_client::/)'
cargo build --workspace --bins
if [ -z "${ERRAND_WITHOUT_CLIENT:-}" ]; then
    exec cargo nextest run --workspace
fi
status=0
cargo nextest run --workspace -E "not $official" || status=$?
cargo nextest list --cargo-quiet --workspace -E "$official" | sed 's/^/not run: /'
echo "These were not run, because $ERRAND_WITHOUT_CLIENT."
exit $status
