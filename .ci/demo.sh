#!/bin/sh
# The demo: an agent that reads this very checkout and writes a report about it.
set -eu
cd "$(dirname "$0")/.."

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

say "building (debug profile: quick to build, slower to run)"
cargo build --quiet --bins
errand=$CARGO_TARGET_DIR/debug/errand

work=$(mktemp -d "${TMPDIR:-/tmp}/errand-demo.XXXXXX")
platform=
stop() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$platform" ] && kill -TERM "$platform" 2>/dev/null; then
        wait "$platform" || true
    fi
    [ $status -eq 0 ] || { echo "demo failed; the platform's last words:" >&2; tail -n 20 "$work/platform.log" >&2; }
    exit $status
}
trap stop EXIT
trap 'exit 130' INT TERM

say "starting the platform in $work/data"
"$errand" up --data-dir "$work/data" --listen 127.0.0.1:0 >"$work/ready" 2>"$work/platform.log" &
platform=$!
while ! grep -q '^ready ' "$work/ready"; do
    kill -0 "$platform" 2>/dev/null || { wait "$platform" || true; platform=; exit 1; }
    sleep 0.05
done
cat "$work/ready"
ERRAND_BASE_URL=$(sed -n 's/^ready //p' "$work/ready")
ERRAND_CONFIG=$work/config.yaml
ERRAND_OUTPUT_FORMAT=table
export ERRAND_BASE_URL ERRAND_CONFIG ERRAND_OUTPUT_FORMAT
unset ERRAND_WORKSPACE ERRAND_CONTEXT ERRAND_TOKEN

say "registering the agent repo-report"
"$errand" agents register --name repo-report --agent-config deploy/examples/repo-report/agent.yaml

say "uploading this checkout's tracked files as the fileset 'checkout'"
mkdir "$work/checkout"
git ls-files -z | tar --create --null --files-from=- | tar --extract --directory="$work/checkout"
files=$(git ls-files | wc -l | tr -d ' ')
"$errand" files upload "$work/checkout/" checkout

say "executing it as a job and following its log"
"$errand" agents execute --agent repo-report --name demo-report \
    --input "Describe this repository." --workdir.base-workdir checkout
"$errand" jobs watch demo-report

say "its results"
"$errand" jobs results list demo-report
"$errand" jobs results download output_workdir --job demo-report -o "$work/output_workdir.tar.gz"
mkdir "$work/output"
tar --extract --gzip --file="$work/output_workdir.tar.gz" --directory="$work/output" --strip-components=1
say "the first lines of $work/output/report.md"
head -n 14 "$work/output/report.md"

say "its six facts, as the streams hold them"
"$errand" jobs facts demo-report --data-dir "$work/data"

counted=$(sed -n 's/^- files: //p' "$work/output/report.md")
if [ "$counted" != "$files" ]; then
    echo "demo: the report counts '$counted' files, git counts $files" >&2
    exit 1
fi
say "done: the report counts $counted files, as git does; everything is in $work"
