# The repository's verbs. Run them as `./dev VERB`, which first installs the pinned tools.

set shell := ["sh", "-eu", "-c"]

default:
    @just --list --unsorted

# Build, run an example agent as a job, show its results, stop
demo:
    .ci/demo.sh

# Every test that needs no credentials
test:
    cargo build --workspace --bins
    cargo nextest run --workspace

# The real agent harnesses against a scripted model
test-harness:
    @echo "there is no harness test yet" >&2; exit 1

# Format, lints, documentation, licences, spelling, sizes, layers, generated files
check: fmt clippy doc deny typos size layers generated

# The platform in the foreground
up *args:
    cargo build --bins
    "$CARGO_TARGET_DIR/debug/errand" up {{args}}

# The benchmarks
bench:
    @echo "there is no benchmark yet" >&2; exit 1

fmt:
    cargo fmt --all --check

clippy:
    cargo clippy --workspace --all-targets -- -D warnings

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

deny:
    .ci/deny.sh

typos:
    typos

size:
    .ci/size.sh

layers:
    .ci/layers.sh

generated:
    cargo nextest run --workspace --lib -E 'test(current)'
