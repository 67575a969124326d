#!/usr/bin/env bash
# C2ST of one amortised estimator against the benchmark's ten reference posteriors of one task.
#   usage: bench/posterior_accuracy/run.sh TASK SEED OUT [flags of nrec train ...]
# Needs the built program and the benchmark's data in ../shared/sbibm (or NREC_SBIBM). Appends nothing: OUT is a new folder that
# gets the estimator, the draws and c2st.csv (task, seed, observation, c2st, mmd2, seconds, sampler, evaluations).
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
[[ $# -ge 3 ]] || { sed -n 2,5p "${BASH_SOURCE[0]}" >&2; exit 2; }
task=$1 seed=$2 out=$3
shift 3
nrec=build/release/nrec
data=${NREC_SBIBM:-../shared/sbibm}/tasks/$task/files
[[ -d $data ]] || { echo "run.sh: $data does not exist; set NREC_SBIBM to the folder that holds tasks/" >&2; exit 3; }
mkdir -p "$out"
"$nrec" train --task "$task" --seed "$seed" --out "$out/train" --resume "$@" >/dev/null
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
echo "task,seed,observation,c2st,mmd2,sample_seconds,metric_seconds,train_seconds,best_epoch,method,evaluations" >"$out/c2st.csv"
for observation in 1 2 3 4 5 6 7 8 9 10; do
  folder=$data/num_observation_$observation
  "$nrec" sample --model "$out/train/estimator.safetensors" --observation "$folder/observation.csv" --seed "$seed" \
    --out "$out/observation_$observation" --max-seconds 3600 --overwrite --quiet >/dev/null
  "$nrec" compare "$folder/reference_posterior_samples.csv.bz2" "$out/observation_$observation/draws.csv" --json --quiet >"$out/observation_$observation/compare.json"
  record=$out/observation_$observation/record.json compare=$out/observation_$observation/compare.json
  echo "$task,$seed,$observation,$(field "$compare" c2st),$(field "$compare" mmd2),$(field "$record" sampling.seconds),$(field "$compare" c2st_seconds),$(field "$out/train/record.json" training.seconds),$(field "$out/train/record.json" training.best_epoch),$(field "$record" sampling.method),$(field "$record" sampling.evaluations)" >>"$out/c2st.csv"
done
awk -F, 'NR > 1 {sum += $4} END {printf "mean C2ST over %d observations: %.4f\n", NR - 1, sum / (NR - 1)}' "$out/c2st.csv"
