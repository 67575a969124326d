#!/usr/bin/env bash
# The posterior mean of the example of docs/methods/failures.md under failures = "model" and "drop", by the program.
#   usage: bench/failures_model/run.sh OUT [SEED ...]        (seeds 1 2 3 if none is given)
# OUT is a new folder; OUT/failures_model.csv gets one line per seed and rule. Exact: model 0.748236, drop 0.832176.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
[[ $# -ge 1 ]] || { sed -n 2,4p "${BASH_SOURCE[0]}" >&2; exit 2; }
out=$1
shift
seeds=("$@")
[[ $# -gt 0 ]] || seeds=(1 2 3)
nrec=build/release/nrec
mkdir -p "$out"
echo 0.75 >"$out/x_o.csv"
cat >"$out/problem.toml" <<'TOML'
[parameters]
theta = { prior = "uniform", low = 0, high = 1 }
[observation]
file = "x_o.csv"
[network]
hidden_features = 50
num_blocks = 2
norm = "layer"
[training]
num_classes = 31
training_batch_size = 512
learning_rate = 1e-3
learning_rate_schedule = "cosine"
max_num_epochs = 20
stop_after_epochs = 0
TOML
field() { python3 -c 'import json, sys; value = json.load(open(sys.argv[1])).get(sys.argv[2], ""); print(value[0] if isinstance(value, list) else value)' "$1" "$2"; }
echo "seed,failures,num_failed,exact_mean,mean,exact_sd,sd,success_gain,success_gain_se,success_seconds,train_seconds,verdict" >"$out/failures_model.csv"
for seed in "${seeds[@]}"; do
  python3 bench/failures_model/simulate.py "$seed" 10000 "$out/sims_$seed.csv"
  for rule in model drop; do
    exact=0.748236,0.097755
    [[ $rule == model ]] || exact=0.832176,0.109822
    folder=$out/${rule}_$seed
    "$nrec" infer "$out/problem.toml" --files "$out/sims_$seed.csv" --failures "$rule" --seed "$seed" --out "$folder" --overwrite --quiet >/dev/null
    record=$folder/record.json
    echo "$seed,$rule,$(field "$record" simulations.num_failed),${exact%,*},$(field "$record" marginals.mean),${exact#*,},$(field "$record" marginals.sd),$(field "$record" training.success.gain),$(field "$record" training.success.gain_se),$(field "$record" training.success.seconds),$(field "$record" training.seconds),$(field "$record" check.verdict)" >>"$out/failures_model.csv"
  done
done
cat "$out/failures_model.csv"
