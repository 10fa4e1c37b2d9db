#!/bin/bash
# Makes the headline figures of README and the documentation again, on one commit, as records and texts below OUT.
#   bash benchmarks/headlines.sh list                      # the steps, their commands, and about how long each takes
#   bash benchmarks/headlines.sh try OUT COMMIT            # every step that needs no GPU, with as little as it takes
#   bash benchmarks/headlines.sh WHAT OUT COMMIT [DATA]    # WHAT: all, cpu, gpu, or names of steps with commas between
# DATA holds the published datasets; without it, or without a GPU, what needs both is skipped. BESIDE=n has n steps run
# side by side, JOBS=n has n processes where a step can use them. Streams that are generated are drawn anew for every
# seed. A line is added to a record as soon as its command ends, so what was measured stays when a later one is cut off.
# Copy the records to docs/results/records and run `python -m figures`; texts (*.txt) are figures that have no record.
set -u
mode=${1:-help} out=${2:-} commit=${3:-} data=${4:-}
case $mode in help | -*) sed -n '2,9p' "$0" && exit 2 ;; esac
cd "$(dirname "$0")/.." || exit 2
export PYTHONPATH=src:.${PYTHONPATH:+:$PYTHONPATH} OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
jobs=${JOBS:-1} beside=${BESIDE:-1}

on_cpu=(drift river river-bananas river-words river-regression local evidence tables densities novelty missing merging
    hard-streams digits)
on_gpu=(wide paper-cifar100 paper-svhn paper-gen gen paper-cifar10 both fast paper-mnist backbone-cifar100
    backbone-cifar10 default-svhn default-cifar100 default-cifar10 default-fashion default-mnist default-fuzzy slda)
case $mode in
list | all) steps=("${on_cpu[@]}" "${on_gpu[@]}") ;;
try | cpu) steps=("${on_cpu[@]}") ;;
gpu) steps=("${on_gpu[@]}") ;;
*) IFS=, read -ra steps <<<"$mode" ;;
esac
for name in "${steps[@]}"; do
    [[ " ${on_cpu[*]} ${on_gpu[*]} " == *" $name "* ]] && continue
    echo "there is no step $name; there are: ${on_cpu[*]} ${on_gpu[*]}" >&2 && exit 2
done
if [ "$mode" = list ]; then
    out=${out:-OUT} commit=${commit:-COMMIT} data=${data:-DATA}
else
    { [ -n "$commit" ] && mkdir -p "$out"; } || { echo "OUT and COMMIT are needed" >&2 && exit 2; }
fi
runs=$(mktemp -d) && trap 'rm -rf "$runs"' EXIT

# carry_out COMMAND: runs it, its output goes to the step's log; `list` shows it.
carry_out() {
    [ "$mode" = list ] && echo "           $*" && return
    "$@" >>"$out/$name.log" 2>&1 || { echo "      failed: $*" && touch "$runs/failed"; }
}

# text FILE COMMAND: the same, for what only prints.
text() {
    [ "$mode" = list ] && echo "           ${*:2} > $out/$1" && return
    "${@:2}" >"$out/$1" 2>>"$out/$name.log" || { echo "      failed: ${*:2}" && touch "$runs/failed"; }
}

# little A -- B: the words A where a step is only tried, B where it is run.
little() {
    local tried=()
    while [ "$1" != -- ]; do tried+=("$1") && shift; done
    shift
    if [ "$mode" = try ]; then chosen=("${tried[@]}"); else chosen=("$@"); fi
}

# cndpm RECORD ARGUMENTS: runs, and adds a line each to a record.
cndpm() {
    [ "$mode" = list ] && echo "           python -m cndpm run ${*:2}" && return
    carry_out python -m cndpm run "${@:2}" --quiet --out "$runs/$name"
    carry_out python -m figures.collecting "$runs/$name" --commit "$commit" --out "$runs/$name.jsonl"
    cat "$runs/$name.jsonl" >>"$out/$1"
    rm -rf "${runs:?}/$name" # a wide model takes gigabytes
}
seen() { # STREAM ARGUMENTS: for README, on a GPU
    cndpm readme-h200.jsonl "$@" --set run.evaluations=0 --set run.evaluation_samples=1000 --device cuda --data-dir "$data"
}
seeds=(--seeds 0 1 2) && [ "$mode" = try ] && seeds=(--seeds 0)
drawn=("${seeds[@]}" --rows-by-seed --commit "$commit")

# step NAME: says what it makes and about how many minutes of one core, or of an H200 that others use too; runs it.
step() {
    name=$1
    case $name in
    digits)
        about 2 "README's Split-Digits -> split-digits-cpu.jsonl"
        little --seeds 1 --fraction 0.2 -- --seeds 5
        cndpm split-digits-cpu.jsonl split-digits "${chosen[@]}" --device cpu
        ;;
    drift)
        about 45 "rules that change beside river's models: results/drift.md -> drift.json"
        little --streams drift-flip --models cndpm -- --jobs "$jobs"
        carry_out python -m benchmarks.drift "${drawn[@]}" "${chosen[@]}" --out "$out/drift.json"
        ;;
    evidence)
        about 10 "what goes with them: recovery, regression, scales, calibration, outliers -> evidence.json"
        little columns novelty --seeds 0 -- --seeds 0,1,2
        carry_out python -m benchmarks.evidence "${chosen[@]}" --rows-by-seed --commit "$commit" --out "$out/evidence.json"
        ;;
    local)
        about 15 "local rules, row by row: results/drift.md -> local.json"
        little --streams board --models cndpm -- --jobs "$jobs"
        carry_out python -m benchmarks.local "${drawn[@]}" "${chosen[@]}" --out "$out/local.json"
        ;;
    tables)
        about 10 "tables that do not change: tuning.md -> tables.jsonl"
        little friedman --
        carry_out python -m benchmarks.tables "${chosen[@]}" "${seeds[@]}" --commit "$commit" --out "$out/tables.jsonl"
        ;;
    densities)
        about 5 "densities of few columns: results/densities.md -> densities.jsonl"
        little --rows 300 --
        local known=(--seeds {0..11}) && [ "$mode" = try ] && known=(--seeds 0)
        carry_out python -m figures.facts --out "$out/densities.jsonl" --commit "$commit" "${known[@]}" -- \
            python -m benchmarks.densities "${known[@]}" "${chosen[@]}"
        ;;
    merging)
        about 4 "models merged: scale.md -> merging.jsonl"
        carry_out python -m benchmarks.merging rows "${seeds[@]}" --commit "$commit" --out "$out/merging.jsonl"
        ;;
    novelty)
        about 5 "what is new: watching.md -> novelty.txt"
        [ "$mode" = try ] || text novelty.txt python -m benchmarks.novelty
        ;;
    missing)
        about 5 "cells that are missing: howto/table.md -> missing.txt"
        little --seeds 1 wine -- --seeds 5
        text missing.txt python -m benchmarks.missing "${chosen[@]}"
        ;;
    river | river-regression | river-words)
        about 10 "river's own datasets, regression and words: river.md -> $name.txt"
        local kind=${name#river} tried=Phishing
        case $kind in -regression) tried=TrumpApproval ;; -words) tried=STAGGER ;; *) kind=-classes ;; esac
        little --streams "$tried" --
        text "$name.txt" python -m benchmarks.river_data --kind "${kind#-}" "${seeds[@]}" "${chosen[@]}"
        ;;
    river-bananas)
        about 10 "seven seeds more of one of them -> river-bananas.txt"
        [ "$mode" = try ] || text river-bananas.txt python -m benchmarks.river_data --streams Bananas --seeds {3..9}
        ;;
    hard-streams)
        about 3 "streams that hurt: scale.md -> hard-streams.txt"
        [ "$mode" = try ] || text hard-streams.txt python -m benchmarks.hard_streams
        ;;
    default-*)
        about 1 "README's default, five seeds -> readme-h200.jsonl"
        local stream=split-${name#default-}
        case $stream in split-svhn) stream=mnist-svhn ;; split-fuzzy) stream=fuzzy-split-mnist ;; esac
        seen "$stream" --seeds 5 --jobs 5
        ;;
    paper-*)
        about 2-8 "README's paper's settings, three seeds, ten of MNIST -> readme-h200.jsonl"
        local stream=split-${name#paper-} n=3
        case $stream in split-svhn) stream=mnist-svhn ;; split-gen) stream=split-mnist-gen ;; split-mnist) n=10 ;; esac
        seen "$stream" --preset paper --seeds $n --jobs $n
        ;;
    fast)
        about 2 "README's preset fast, three seeds -> readme-h200.jsonl"
        seen split-cifar10 --preset fast --seeds 3 --jobs 3
        ;;
    backbone-*)
        about 1 "README's frozen networks, three seeds -> readme-h200.jsonl"
        seen "split-${name#backbone-}" --set learner.features=backbone --seeds 3 --jobs 3
        ;;
    wide) # one after the other: 60 GB of the GPU each
        about 12 "README's default with 683 patches, three seeds -> readme-h200.jsonl"
        for stream in split-cifar100 split-cifar10; do
            for seed in 0 1 2; do seen $stream --set learner.n_patches=683 --seed $seed; done
        done
        ;;
    both)
        about 3 "README's networks beside Gaussians, three seeds -> readme-h200.jsonl"
        seen mnist-svhn --set learner.classifier=both --seeds 3 --jobs 3
        ;;
    gen)
        about 4 "README's generation by default, three seeds -> readme-h200.jsonl"
        seen split-mnist-gen --seeds 3 --jobs 3
        ;;
    slda)
        about 3 "README's streaming LDA, three seeds -> readme-h200.jsonl"
        for stream in split-mnist fuzzy-split-mnist split-fashion split-cifar10 split-cifar100 mnist-svhn; do
            carry_out python -m benchmarks.slda_patches $stream --seeds 3 --data "$data" --commit "$commit" \
                --out "$out/readme-h200.jsonl"
        done
        ;;
    esac
}

about() { printf '%5s min  %s: %s\n' "$1" "$name" "$2"; }

can=$([ "$mode" != list ] && python -c 'import torch; print(int(torch.cuda.is_available()))')
began=$SECONDS
for name in "${steps[@]}"; do
    if [ "$mode" != list ] && [[ " ${on_gpu[*]} " == *" $name "* ]] && { [ "$can" != 1 ] || [ -z "$data" ]; }; then
        echo "           $name is skipped: it needs a GPU and DATA"
        continue
    fi
    while [ "$(jobs -rp | wc -l)" -ge "$beside" ]; do wait -n; done
    if [ "$mode" = list ]; then
        step "$name"
    else
        (started=$SECONDS && step "$name" && echo "           $name took $((SECONDS - started)) s") &
    fi
done
wait
[ "$mode" = list ] || echo "           all took $((SECONDS - began)) s"
[ ! -e "$runs/failed" ]
