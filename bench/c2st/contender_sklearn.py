"""Times C2ST of nrec and of scikit-learn on the same two .npy files, one after the other, and prints JSON lines.

    python bench/c2st/contender_sklearn.py build/release/bench/c2st/nrec_c2st REFERENCE.npy SAMPLES.npy
        [--max-iterations N] [--repeats N]

scikit-learn is timed with n_jobs = 1 as the benchmark uses it, once with its BLAS on one thread and once with the
BLAS default. Needs numpy and scikit-learn; says so and stops with code 0 where they are absent.
"""
import argparse
import json
import os
import subprocess
import sys
import time
import warnings

try:
    import numpy as np
    import sklearn
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import KFold, cross_val_score
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_info, threadpool_limits
except ImportError as error:
    print(json.dumps({"contender": "sklearn", "skipped": str(error)}))
    sys.exit(0)


def sklearn_c2st(reference, samples, max_iterations):
    mean, sd = reference.mean(0), reference.std(0, ddof=1)
    features = np.concatenate([(reference - mean) / sd, (samples - mean) / sd]).astype(np.float32)
    labels = np.concatenate([np.zeros(len(reference)), np.ones(len(samples))])
    hidden = 10 * features.shape[1]
    network = MLPClassifier(activation="relu", hidden_layer_sizes=(hidden, hidden), max_iter=max_iterations,
                            solver="adam", random_state=1)
    return cross_val_score(network, features, labels, cv=KFold(n_splits=5, shuffle=True, random_state=1),
                           scoring="accuracy")


def timed_sklearn(reference, samples, max_iterations, blas_threads):
    with threadpool_limits(limits=blas_threads, user_api="blas"):
        blas = [(p["architecture"], p["num_threads"]) for p in threadpool_info() if p["user_api"] == "blas"]
        cpu, wall = time.process_time(), time.perf_counter()
        scores = sklearn_c2st(reference, samples, max_iterations)
        return {"contender": "sklearn", "version": sklearn.__version__, "blas": blas,
                "seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu,
                "c2st": float(scores.mean()), "fold_accuracy": scores.tolist()}


def timed_nrec(arguments, threads):
    command = [arguments.program, arguments.reference, arguments.samples, "--threads", str(threads),
               "--max-iterations", str(arguments.max_iterations)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("reference")
    parser.add_argument("samples")
    parser.add_argument("--max-iterations", type=int, default=10000)
    parser.add_argument("--repeats", type=int, default=1)
    arguments = parser.parse_args()
    os.environ.pop("OPENBLAS_CORETYPE", None)
    warnings.simplefilter("ignore", ConvergenceWarning)
    reference, samples = np.load(arguments.reference), np.load(arguments.samples)
    for repeat in range(arguments.repeats):
        rows = {"nrec_1": timed_nrec(arguments, 1),
                "sklearn_1": timed_sklearn(reference, samples, arguments.max_iterations, 1),
                "nrec_2": timed_nrec(arguments, 2),
                "sklearn_default": timed_sklearn(reference, samples, arguments.max_iterations, None)}
        for name, row in rows.items():
            print(json.dumps({"name": name, "repeat": repeat, **row}))
        ratios = {f"{slow}/{fast}": round(rows[slow]["seconds"] / rows[fast]["seconds"], 2)
                  for slow in ("sklearn_1", "sklearn_default") for fast in ("nrec_1", "nrec_2")}
        cpu = {"sklearn_1/nrec_1": round(rows["sklearn_1"]["cpu_seconds"] / rows["nrec_1"]["cpu_seconds"], 2)}
        print(json.dumps({"reference": os.path.basename(arguments.reference), "repeat": repeat,
                          "max_iterations": arguments.max_iterations, "ratio_seconds": ratios, "ratio_cpu_seconds": cpu}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
