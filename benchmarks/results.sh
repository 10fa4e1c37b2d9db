#!/bin/bash
# The runs behind README's default column and some cells of the paper's configuration, side by side on one GPU, as records:
#   bash benchmarks/results.sh DATA OUT COMMIT      # 16 cores and an H200: about five minutes
# Runs go to a temporary folder, which holds gigabytes of models; OUT receives one line a run.
set -u
data=$1 out=$2 commit=$3
export PYTHONPATH=src:. OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
runs=$(mktemp -d)
began=$SECONDS
cndpm() { timeout 420 python -m cndpm "$@" --data-dir "$data" --device cuda --quiet >>"$out/results.log" 2>&1; }
few="--set run.evaluations=0 --set run.evaluation_samples=200"

# The paper's networks take longest.
cndpm run split-cifar10 --preset paper --seeds 3 --jobs 3 $few --out "$runs/paper/split-cifar10" &
cndpm run split-mnist-gen --preset paper --seeds 3 --jobs 3 $few --out "$runs/paper/split-mnist-gen" &
for stream in split-cifar100 mnist-svhn split-cifar10 split-fashion split-mnist fuzzy-split-mnist; do
    cndpm run $stream --seeds 5 --jobs 2 $few --out "$runs/default/$stream" &
    pids+=($!)
done
wait "${pids[@]}"
echo "default: $((SECONDS - began)) s"
pids=()
for cell in "cifar10 0.1 48" "cifar100 0.1 48" "svhn 0.25 48" "fashion 0.05 48"; do
    timeout 150 python -m benchmarks.few_samples $cell --data "$data" --commit "$commit" --out "$out/few-samples.jsonl" \
        >>"$out/results.log" 2>&1 &
    pids+=($!)
done
streams="split-mnist split-fashion split-cifar10 split-cifar100 mnist-svhn fuzzy-split-mnist"
timeout 200 python -m benchmarks.slda_patches $streams --seeds 3 --data "$data" --commit "$commit" \
    --out "$out/slda-patches.jsonl" >>"$out/results.log" 2>&1 &
pids+=($!)
cndpm run fuzzy-split-mnist --preset paper --seeds 3 --jobs 3 $few --out "$runs/paper/fuzzy-split-mnist" &
pids+=($!)
prune="python -m benchmarks.pruned --fraction 0.5 --data $data --commit $commit --out $out/pruning.jsonl"
timeout 240 $prune --validate --seeds 10 11 12 13 14 --jobs 5 >>"$out/results.log" 2>&1 &
pids+=($!)
timeout 240 $prune --seeds 20 21 22 23 24 25 26 27 28 29 --jobs 5 >>"$out/results.log" 2>&1 &
pids+=($!)
timeout 240 $prune --scenario split-fashion --seeds 20 21 22 23 24 --jobs 5 >>"$out/results.log" 2>&1 &
pids+=($!)
wait
echo "all: $((SECONDS - began)) s"
python -m figures.collecting "$runs/default" --commit "$commit" --out "$out/default-h200.jsonl"
python -m figures.collecting "$runs/paper" --commit "$commit" --out "$out/paper-h200.jsonl"
