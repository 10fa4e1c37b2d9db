#!/bin/bash
# Makes the headline figures of README and the documentation again, on one commit, as records and texts below OUT.
#   bash benchmarks/headlines.sh list                     # the steps, their commands, and about how long each takes
#   bash benchmarks/headlines.sh try OUT COMMIT           # every step that needs no GPU, with as little as it takes
#   bash benchmarks/headlines.sh all OUT COMMIT [DATA]    # all of them; what needs a GPU and DATA is skipped without
# DATA holds the published datasets. Streams that are generated are drawn anew for every seed. Copy the records to
# docs/results/records, name them in figures/*.toml where they are new, and run `python -m figures`; texts (*.txt) are
# those of figures that have no record. JOBS=n has n processes where a step can use them.
set -u
mode=${1:-list} out=${2:-} commit=${3:-} data=${4:-}
case $mode in list | try | all) ;; *) sed -n '2,8p' "$0" && exit 2 ;; esac
cd "$(dirname "$0")/.." || exit 2
export PYTHONPATH=src:. OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
jobs=${JOBS:-1} minutes=0 failed=0 n=0
if [ "$mode" = list ]; then
    out=${out:-OUT} commit=${commit:-COMMIT} data=${data:-DATA}
else
    { [ -n "$commit" ] && mkdir -p "$out"; } || { echo "OUT and COMMIT are needed" >&2 && exit 2; }
fi
runs=$(mktemp -d) && trap 'rm -rf "$runs"' EXIT
gpu=$([ "$mode" = all ] && python -c 'import torch; print(int(torch.cuda.is_available()))')

# step MINUTES WHAT: announces one, with the minutes it takes (of one core, or of an H200), and says what the last took.
step() {
    [ "$mode" = list ] || [ -z "${began:-}" ] || echo "           took $((SECONDS - began)) s"
    began=$SECONDS minutes=$((minutes + $1))
    printf '%5s min  %s\n' "$1" "$2"
}

# do_it COMMAND: runs it; its output goes to the log of OUT.
do_it() {
    [ "$mode" = list ] && echo "           $*" && return
    "$@" >>"$out/headlines.log" 2>&1 || { echo "      failed: $*" && failed=1; }
}

# text FILE COMMAND: the same, for what only prints.
text() {
    [ "$mode" = list ] && echo "           ${*:2} > $out/$1" && return
    "${@:2}" >"$out/$1" 2>>"$out/headlines.log" || { echo "      failed: ${*:2}" && failed=1; }
}

# little A -- B: the words A where a step is only tried, B where it is run.
little() {
    local tried=()
    while [ "$1" != -- ]; do tried+=("$1") && shift; done
    shift
    if [ "$mode" = try ]; then chosen=("${tried[@]}"); else chosen=("$@"); fi
}

cndpm() { do_it python -m cndpm run "$@" --quiet --out "$runs/$((n += 1))"; }
record() {
    do_it python -m figures.collecting "$runs" --commit "$commit" --out "$out/$1"
    rm -rf "${runs:?}"/*
}
seeds=(--seeds 0 1 2) && [ "$mode" = try ] && seeds=(--seeds 0)

echo "On a CPU:"
step 2 "README's Split-Digits -> split-digits-cpu.jsonl"
little --seeds 1 --fraction 0.2 -- --seeds 5
cndpm split-digits "${chosen[@]}" --device cpu
record split-digits-cpu.jsonl

step 25 "rules that change beside river's models: results/drift.md -> drift.json"
little --streams drift-flip --models cndpm -- --jobs "$jobs"
do_it python -m benchmarks.drift --rows-by-seed "${seeds[@]}" "${chosen[@]}" --commit "$commit" --out "$out/drift.json"

step 10 "what goes with them: recovery, regression, scales, calibration, outliers -> evidence.json"
little columns novelty --seeds 0 -- --seeds 0,1,2
do_it python -m benchmarks.evidence "${chosen[@]}" --rows-by-seed --commit "$commit" --out "$out/evidence.json"

step 15 "local rules, row by row: results/drift.md -> local.json"
little --streams board --models cndpm -- --jobs "$jobs"
do_it python -m benchmarks.local --rows-by-seed "${seeds[@]}" "${chosen[@]}" --commit "$commit" --out "$out/local.json"

step 10 "tables that do not change: tuning.md -> tables.jsonl"
little friedman --
do_it python -m benchmarks.tables "${chosen[@]}" "${seeds[@]}" --commit "$commit" --out "$out/tables.jsonl"

step 5 "densities of few columns: results/densities.md -> densities.jsonl"
little --seeds 0 --rows 300 --
known=(--seeds {0..11}) && [ "$mode" = try ] && known=(--seeds 0)
do_it python -m figures.facts --out "$out/densities.jsonl" --commit "$commit" "${known[@]}" -- \
    python -m benchmarks.densities "${chosen[@]}"

step 4 "models merged: scale.md -> merging.jsonl"
do_it python -m benchmarks.merging rows "${seeds[@]}" --commit "$commit" --out "$out/merging.jsonl"

step 5 "what is new: watching.md -> novelty.txt"
[ "$mode" = try ] || text novelty.txt python -m benchmarks.novelty

step 5 "cells that are missing: howto/table.md -> missing.txt"
little --seeds 1 wine -- --seeds 5
text missing.txt python -m benchmarks.missing "${chosen[@]}"

step 30 "river's own datasets, and words: river.md -> river.txt, river-regression.txt, river-words.txt"
little --streams Phishing --
text river.txt python -m benchmarks.river_data "${seeds[@]}" "${chosen[@]}"
[ "$mode" = try ] || text river-bananas.txt python -m benchmarks.river_data --streams Bananas --seeds {3..9}
little --streams TrumpApproval --
text river-regression.txt python -m benchmarks.river_data --kind regression "${seeds[@]}" "${chosen[@]}"
little --streams STAGGER --
text river-words.txt python -m benchmarks.river_data --kind words "${seeds[@]}" "${chosen[@]}"

step 3 "streams that hurt: scale.md -> hard-streams.txt"
[ "$mode" = try ] || text hard-streams.txt python -m benchmarks.hard_streams
echo "      about $minutes minutes of one core in all"

minutes=0
echo "On a GPU, with the published datasets:"
if [ "$mode" != list ] && { [ "$mode" = try ] || [ "$gpu" != 1 ] || [ -z "$data" ]; }; then
    echo "      skipped: README's Split-MNIST, -CIFAR10, -CIFAR100, -FashionMNIST, MNIST-SVHN, generation and streaming LDA"
    exit $failed
fi
few=(--set run.evaluations=0 --set run.evaluation_samples=1000)
on_gpu() { cndpm "$@" "${few[@]}" --device cuda --data-dir "$data"; }

step 8 "README's default, five seeds -> default-h200.jsonl"
for stream in split-mnist fuzzy-split-mnist split-fashion split-cifar10 split-cifar100 mnist-svhn; do
    on_gpu $stream --seeds 5 --jobs 5
done
record default-h200.jsonl

step 15 "README's paper's settings, and the preset fast -> paper-cndpm-h200.jsonl"
on_gpu split-mnist --preset paper --seeds 10 --jobs 10
on_gpu split-cifar10 --preset paper --seeds 10 --jobs 10
on_gpu split-cifar10 --preset fast --seeds 3 --jobs 3
for stream in split-cifar100 mnist-svhn split-mnist-gen; do
    on_gpu $stream --preset paper --seeds 3 --jobs 3
done
record paper-cndpm-h200.jsonl

step 10 "README's frozen networks, 683 patches, networks beside Gaussians, generation -> seeds-h200.jsonl"
for stream in split-cifar10 split-cifar100; do
    on_gpu $stream --set learner.features=backbone --seeds 3 --jobs 3
    on_gpu $stream --set learner.n_patches=683 --seeds 3 --jobs 1 # 60 GB of the GPU each
done
on_gpu mnist-svhn --set learner.classifier=both --seeds 3 --jobs 3
on_gpu split-mnist-gen --seeds 3 --jobs 3
record seeds-h200.jsonl

step 3 "README's streaming LDA -> slda-patches.jsonl"
do_it python -m benchmarks.slda_patches split-mnist split-fashion split-cifar10 split-cifar100 mnist-svhn \
    fuzzy-split-mnist --seeds 3 --data "$data" --commit "$commit" --out "$out/slda-patches.jsonl"
echo "      about $minutes minutes of an H200 with 16 cores in all"
exit $failed
