#!/bin/sh
# Who may say what within a crate; deny.toml says the same of crates.
set -eu
bad=0

# only WORD MEANING ALLOWED-PATHS: WORD stands in no other source file. Comments do not count.
only() {
    found=$(git ls-files --cached --others --exclude-standard '*.rs' |
        grep -v -E "$3" |
        xargs grep -nE "$1" /dev/null |
        grep -vE '^[^:]+:[0-9]+:[[:space:]]*//' || true)
    if [ -n "$found" ]; then
        printf 'layers: %s\n%s\n' "$2" "$found" >&2
        bad=1
    fi
}

tests='/tests\.rs$|/tests/|^tests/'
clients='^deploy/clients/'
mains='^src/main\.rs$|^workers/runner/src/main\.rs$'
only '\bsqlx::' 'only records says sqlx' "^src/records(\.rs|/)|$tests"
only '\baxum::' 'only http says axum' "^src/http(\.rs|/)|$tests"
only '\basync_nats::' 'only streams::jetstream says async_nats' "^streams/src/jetstream(\.rs|/)|$clients|$tests"
only '\bclap::' 'only the command line says clap' "^src/cli(\.rs|/)|$mains|$tests"
only '\b(print|println)!' 'only cli::render prints' "^src/cli/render\.rs$|$mains|$clients|^workers/runner/|$tests"
only '\bnemo_fabric_core::' 'only the runner says nemo_fabric_core' "^workers/runner/|$tests"
exit $bad
