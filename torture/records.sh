#!/bin/bash
# All attacks as lines of a record, side by side on 16 cores; they are nice to other work:
#   bash torture/records.sh OUT COMMIT [SECONDS]      # at most a minute longer than SECONDS (300)
#   COSTS=1 bash torture/records.sh OUT COMMIT        # first a minute or two of costs, on cores that must be idle
# OUT receives torture.jsonl, with costs also replay.jsonl and bench-cpu.jsonl, and what the commands print.
set -u
out=$1 commit=$2 seconds=${3:-300}
export PYTHONPATH=src:. OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
attack() { timeout $((seconds + 60)) nice python -m "$@" --commit "$commit" --out "$out/torture.jsonl" >>"$out/torture.log" 2>&1; }

if [ -n "${COSTS:-}" ]; then  # ratios measured in one run
    taskset -c 0 python -m figures.facts --commit "$commit" --seeds 0 --out "$out/replay.jsonl" -- python -m benchmarks.replay &
    OMP_NUM_THREADS=2 taskset -c 2,3 python -m figures.facts --commit "$commit" --seeds 0 --out "$out/bench-cpu.jsonl" \
        -- python -m benchmarks.costs &
    wait
    echo "costs: $SECONDS s"
fi

attack torture.endless --n 500000 --seconds "$seconds" &
attack torture.endless --n 200000 --model default --seconds "$seconds" &
attack torture.serving --kills 400 --seed 0 &
attack torture.loaders --n 100000 --seed 0 --jobs 4 --seconds "$seconds" &
attack torture.calls --n 100000 --seed 0 --jobs 3 --seconds "$seconds" &
attack torture.threads --n 100 --seed 0 --jobs 2 --seconds "$seconds" &
{ attack torture.kills --n 1000 --seed 0 --seconds "$((seconds / 2))"
  attack torture.readers --n 100000 --seed 0 --seconds "$((seconds / 2))"; } &
{ attack torture.interrupts --n 1700 --seed 0 --jobs 2 --seconds "$((seconds / 2))"
  attack torture.overrides --n 20000 --seed 0 --seconds "$((seconds / 2))"; } &
{ attack torture.crash_points --seed 0 --jobs 2 --seconds "$((seconds / 3))"
  attack torture.loaders --n 10000 --seed 0 --what flips --seconds "$((seconds / 3))"; } &
wait
echo "all: $SECONDS s"
