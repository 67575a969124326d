#!/usr/bin/env bash
# Estimators and observations for compare.py: a rough network of the published architecture (128 x 3, batch norm) per task.
#   usage: bench/sampling_cost/prepare.sh FOLDER
# Needs the built program and the target sampling_cost.
set -euo pipefail
export LC_ALL=C
[[ $# -eq 1 ]] || { sed -n 2,4p "${BASH_SOURCE[0]}" >&2; exit 2; }
folder=$1
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
mkdir -p "$folder"
for task in slcp gaussian_linear; do
  build/release/nrec train --task "$task" --num-simulations 10000 --settings published --num-classes 9 --max-num-epochs 20 --stop-after-epochs 0 \
    --learning-rate 2e-3 --learning-rate-schedule cosine --seed 1 --out "$folder/$task" --resume --quiet >/dev/null
  build/release/bench/sampling_cost/sampling_cost observations "$task" 1000 1 >"$folder/$task.csv"
done
