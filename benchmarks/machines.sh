#!/bin/bash
# How far the same command and seeds differ between processors, as a record, a line a run:
#   bash benchmarks/machines.sh DATA OUT COMMIT DEVICE [NAME]     # DEVICE: cpu or cuda; about two minutes each
# Run it on every machine that is to be compared, and join the files OUT/machines-NAME.jsonl.
set -u
data=$1 out=$2 commit=$3 device=$4 name=${5:-$4}
export PYTHONPATH=src:. OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
runs=$(mktemp -d)
cndpm() {
    timeout 480 python -m cndpm run "$@" --data-dir "$data" --device "$device" --set run.evaluations=0 --quiet \
        >>"$out/machines-$name.log" 2>&1
}
cndpm split-digits --seeds 5 --out "$runs/digits" &
cndpm split-mnist --fraction 0.1 --seeds 3 --out "$runs/mnist" &
cndpm split-mnist --fraction 0.1 --seeds 3 --preset fast --out "$runs/fast" &
wait
python -m figures.collecting "$runs" --commit "$commit" --out "$out/machines-$name.jsonl"
