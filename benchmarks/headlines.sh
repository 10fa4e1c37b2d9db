#!/bin/bash
# The headline figures of one commit: README's table, drift, densities and what goes with them, as records below OUT.
#   bash benchmarks/headlines.sh cpu OUT COMMIT          # two hours of one core, most of it river's models
#   bash benchmarks/headlines.sh gpu OUT COMMIT DATA     # needs a GPU and the published datasets; an H200: half an hour
# Streams that are generated are drawn anew for every seed. Copy the records to docs/results/records, name them in
# figures/*.toml where they are new, and run `python -m figures`. With `list` for `cpu` the commands are shown, not run.
set -u
part=$1 out=${2:-} commit=${3:-} data=${4:-}
cd "$(dirname "$0")/.." || exit 2
export PYTHONPATH=src:. OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
runs=$(mktemp -d)
few="--set run.evaluations=0 --set run.evaluation_samples=1000"

# Runs a command and waits for it; its last words go to the log of OUT.
do_it() {
    if [ "$part" = list ]; then echo "$@"; else "$@" >>"$out/headlines.log" 2>&1 || { echo "failed: $*" >&2; failed=1; }; fi
}
cndpm() { do_it python -m cndpm run "$@" --quiet --out "$runs/$((n += 1))"; }
on_gpu() { cndpm "$@" $few --device cuda --data-dir "$data"; }
collect() { do_it python -m figures.collecting "$runs" --commit "$commit" --out "$out/$1"; }
n=0 failed=0

if [ "$part" = cpu ] || [ "$part" = list ]; then
    cndpm split-digits --seeds 5 --device cpu
    collect headlines-cpu.jsonl
    do_it python -m figures.facts --out "$out/densities.jsonl" --commit "$commit" --seeds {0..11} -- \
        python -m benchmarks.densities
    do_it python -m benchmarks.evidence --out "$out/evidence.json" --commit "$commit"
    do_it python -m benchmarks.drift --rows-by-seed --seeds 0 1 2 --jobs 2 --commit "$commit" --out "$out/drift.json"
fi
if [ "$part" = gpu ] || [ "$part" = list ]; then
    for stream in split-mnist fuzzy-split-mnist split-fashion split-cifar10 split-cifar100 mnist-svhn; do
        on_gpu $stream --seeds 5 --jobs 5
    done
    on_gpu split-mnist --preset paper --seeds 10 --jobs 10
    on_gpu split-cifar10 --preset paper --seeds 10 --jobs 10
    on_gpu split-cifar10 --preset fast --seeds 3 --jobs 3
    for stream in split-cifar100 mnist-svhn split-mnist-gen; do
        on_gpu $stream --preset paper --seeds 3 --jobs 3
    done
    for stream in split-cifar10 split-cifar100; do
        on_gpu $stream --set learner.features=backbone --seeds 3 --jobs 3
        on_gpu $stream --set learner.n_patches=683 --seeds 3 --jobs 1 # 60 GB of the GPU each
    done
    on_gpu mnist-svhn --set learner.classifier=both --seeds 3 --jobs 3
    on_gpu split-mnist-gen --seeds 3 --jobs 3
    collect headlines-gpu.jsonl
    do_it python -m benchmarks.slda_patches split-mnist split-fashion split-cifar10 split-cifar100 mnist-svhn \
        fuzzy-split-mnist --seeds 3 --data "$data" --commit "$commit" --out "$out/slda-patches.jsonl"
fi
rm -r "$runs"
exit $failed
