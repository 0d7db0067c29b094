# The repository's verbs. demo, test, check and up go through `./dev VERB`, which first installs
# the pinned tools; the others are for `just VERB`.

set shell := ["sh", "-eu", "-c"]

default:
    @just --list --unsorted

# Build, run an example agent as a job, show its results, stop
demo:
    .ci/demo.sh

# Every test that needs no credentials
test:
    .ci/test.sh

# A row for each field case and its test; fails when one is missing or fails
cases:
    .ci/cases.sh

# The real agent harnesses against a scripted model
test-harness:
    @echo "there is no harness test yet" >&2; exit 1

# Format, lints, documentation, licences, spelling, sizes, layers, generated files
check: fmt clippy doc deny typos size layers generated

# The platform in the foreground
up *args:
    cargo build --bins
    "$CARGO_TARGET_DIR/debug/errand" up {{args}}

# The benchmarks, optimised: one table, exit 1 when a limit is missed
bench:
    cargo build --release --workspace --bins
    cargo bench --bench bench

# So many jobs of all kinds through one platform, after which nothing is left; prints a table
soak jobs="500":
    cargo build --workspace --bins
    ERRAND_SOAK_JOBS={{jobs}} cargo nextest run --workspace --no-capture --profile soak -E 'test(many_jobs_of_all_kinds)'

# So many lines through one batch, whose client is killed twice and its server once; prints figures
batch lines="10000":
    cargo build --workspace --bins
    ERRAND_BATCH_LINES={{lines}} cargo nextest run --workspace --no-capture --profile soak -E 'test(a_batch_of_many_lines)'

# So many seconds in which everything is killed at random while jobs run; prints a table
chaos seconds="600":
    cargo build --workspace --bins
    ERRAND_CHAOS_SECONDS={{seconds}} cargo nextest run --workspace --no-capture --profile chaos -E 'test(/^chaos::/)'

# Two workspaces, one of them with so many jobs, and one slot; tells how far each is
fair jobs="1000":
    cargo build --workspace --bins
    ERRAND_FAIR_JOBS={{jobs}} cargo nextest run --workspace --no-capture -E 'test(a_small_workspace_is_done)'

# So many seeds of the simulated chain, from the first on; a seed that fails tells its history
simulate seeds="100000" first="0":
    ERRAND_SIM_SEEDS={{seeds}} ERRAND_SIM_FIRST={{first}} cargo nextest run --workspace --test sim --no-capture --profile soak -E 'test(no_seed_breaks)'

# Large trees beside tar and gzip, optimised: one table, exit 1 when a limit is missed
bench-trees:
    cargo build --release --workspace --bins
    cargo bench --bench bench -- trees

# Fuzz a target (bundle, agent_yaml) for some seconds; wants cargo-fuzz and a C++ compiler
fuzz target seconds="60":
    RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none {{target}} -- -max_total_time={{seconds}}

# Write the generated files anew
gen:
    ERRAND_UPDATE=1 cargo nextest run --workspace --lib -E 'test(current) | test(/^schema::/)'

fmt:
    cargo fmt --all --check

clippy:
    cargo clippy --workspace --all-targets -- -D warnings

doc:
    RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --workspace --no-deps --document-private-items

deny:
    .ci/deny.sh

typos:
    typos

size:
    .ci/size.sh

layers:
    .ci/layers.sh

generated:
    cargo nextest run --workspace --lib -E 'test(current) | test(/^schema::/)'
