# A straight line with noise, x_j = shift + slope t_j + 0.5 n_j, t = -1, 0, 1, run once per row: sh line.sh SHIFT SLOPE SEED
awk -v shift="$1" -v slope="$2" -v seed="$3" 'BEGIN {
  srand(seed)
  for (t = -1; t <= 1; ++t)
    printf "%.17g ", shift + slope * t + 0.5 * sqrt(-2 * log(1 - rand())) * cos(6.283185307179586 * rand())
  print ""
}'
