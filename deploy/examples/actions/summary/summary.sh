#!/bin/sh
# Runs in a directory of its own that holds output_workdir/. What it writes into $ERRAND_RESULTS
# becomes results of the job; what it prints goes to the job's log.
set -eu

cat > told.json # the job, the agent, this action's config, and what the agent returned
cp told.json "$ERRAND_RESULTS/told.json"
(cd output_workdir && find . -type f | sort) > "$ERRAND_RESULTS/files.txt"
echo "summarised $(wc -l < "$ERRAND_RESULTS/files.txt") files"
