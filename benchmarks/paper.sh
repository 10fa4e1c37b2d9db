#!/bin/bash
# Cells of the paper's tables as records, side by side on one GPU with 16 cores, each part about nine minutes of an H200:
#   bash benchmarks/paper.sh methods DATA OUT COMMIT    # the compared methods
#   bash benchmarks/paper.sh tables DATA OUT COMMIT     # CN-DPM on Split-CIFAR10 and MNIST-SVHN, two figures of the README
#   bash benchmarks/paper.sh cifar100 DATA OUT COMMIT   # CN-DPM on Split-CIFAR100, every replay learner on Split-CIFAR10
#   bash benchmarks/paper.sh longer DATA OUT COMMIT     # ten epochs, ten rounds, a fifth of one, smaller memories
# Runs go to a temporary folder, which holds gigabytes of models; OUT receives one line a run.
set -u
part=$1 data=$2 out=$3 commit=$4
export PYTHONPATH=src:. OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
runs=$(mktemp -d)
limit=$((SECONDS + 500))
few="--set run.evaluations=0 --set run.evaluation_samples=1000 --data-dir $data --device cuda --quiet"

cell() { # FOLDER SCENARIO ARGUMENTS...: one command, ended where the part's time is over
    local folder=$1 left=$((limit - SECONDS))
    shift
    [ $left -gt 5 ] && timeout $left python -m cndpm run "$@" $few --out "$runs/$folder" >>"$out/$part.log" 2>&1
}
pool() { # JOBS: runs cells, a line each from standard input, so many at a time
    local jobs=$1
    while read -r line; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
        cell $line &
    done
    wait
}
paper() { echo "$1-$2-$RANDOM $1 --learner $2 --preset paper ${*:3}"; }

variants() { # SETTINGS...: streams of ten times the length with other settings of the optimiser, on held-out samples
    for variant in "$@"; do
        local set="--set learner.${variant//,/ --set learner.}"
        paper split-mnist finetune --validate --seed 10 --repeats 10 $set
        paper split-mnist reservoir --validate --seed 10 --repeats 10 $set
        paper split-mnist reservoir --validate --seed 10 --epochs 10 $set
        paper split-mnist reservoir --validate --seed 10 $set
    done
}

methods() {
    {
        for stream in split-cifar10 split-cifar100 mnist-svhn split-mnist-gen; do
            paper $stream finetune --seeds 3
            paper $stream reservoir --seeds 3
            paper iid-$stream iid-online --seeds 3
        done
        for learner in finetune reservoir; do paper fuzzy-split-mnist $learner --seeds 3; done
        variants learning_rate=1e-3 learning_rate=3e-3 weight_decay=0 optimizer=sgd,learning_rate=0.1 \
            optimizer=sgd,learning_rate=0.01
        for learner in finetune reservoir; do
            paper split-cifar10 $learner --seeds 3 --fraction 0.2
            paper split-mnist $learner --seed 1 --seeds 2 --epochs 10
            paper split-mnist $learner --seed 1 --seeds 2 --repeats 10
        done
        paper iid-split-cifar10 iid-online --seeds 3 --fraction 0.2
        for stream in split-cifar10 split-cifar100; do paper $stream reservoir --seeds 3 --set learner.memory_size=500; done
    } >"$runs/cells"
    (pool 12 <"$runs/cells") & # in a shell of its own, which counts its own jobs alone
}

tables() {
    cell cifar10 split-cifar10 --preset paper --seeds 10 --jobs 10 &
    cell svhn mnist-svhn --preset paper --seeds 3 --jobs 3 &
    # Sixty gigabytes of the GPU, so one at a time.
    cell wide split-cifar100 --seeds 3 --set learner.n_patches=683 &
    cell gen split-mnist-gen --seeds 3 &
}

cifar100() {
    cell cifar100 split-cifar100 --preset paper --seeds 3 --jobs 3 & # 13 minutes beside fifteen others
    {
        for stream in split-cifar10 split-cifar100; do paper iid-$stream iid-online --seeds 3; done
        for learner in er-ace der der++ reservoir; do echo "replay-$learner split-cifar10 --learner $learner --seeds 3"; done
        for learner in gdumb a-gem mir scr gss; do echo "replay-$learner split-cifar10 --learner $learner"; done
    } >"$runs/cells"
    (pool 3 <"$runs/cells") &
}

longer() {
    cell epochs split-cifar10 --preset paper --seeds 3 --jobs 3 --epochs 10 &
    cell rounds split-cifar10 --preset paper --seeds 3 --jobs 3 --repeats 10 &
    {
        variants weight_decay=0,learning_rate=1e-3 weight_decay=0,learning_rate=3e-3
        paper split-cifar10 cndpm --seeds 3 --fraction 0.2
        paper split-cifar10 cndpm --seeds 3 --set learner.memory_size=500
        for length in "--epochs 10" "--repeats 10"; do
            for learner in finetune reservoir; do paper split-cifar10 $learner $length; done
        done
    } >"$runs/cells"
    (pool 2 <"$runs/cells") &
}

began=$SECONDS
$part
wait
echo "$part: $((SECONDS - began)) s"
python -m figures.collecting "$runs" --commit "$commit" --out "$out/$part-h200.jsonl"
