#!/bin/sh
# As root: bench/campaign/disk_full.sh NREC
# A campaign on a file system of 8 MB: it ends when the disk is full, and goes on when there is space again.
set -eu
nrec=$(realpath "$1")
folder=$(mktemp -d)
mkdir "$folder/disk"
mount -t tmpfs -o size=8m tmpfs "$folder/disk"
trap 'umount "$folder/disk"; rm -r "$folder"' EXIT
cd "$folder"
rows=400000
code=0
"$nrec" simulate --task two_moons -n $rows --out disk/campaign --quiet 2>message || code=$?
echo "exit code $code: $(tail -2 message)"
df "$folder/disk" | tail -1
acknowledged=$(sed -n 's/.*"num_stored": *\([0-9]*\).*/\1/p' disk/campaign/progress-1-of-1.json)
mount -o remount,size=200m "$folder/disk"
stored=$("$nrec" info disk/campaign --json | sed -n 's/.*"rows": *\([0-9]*\).*/\1/p')
echo "acknowledged $acknowledged, stored $stored"
"$nrec" simulate --task two_moons -n $rows --out disk/campaign --quiet
"$nrec" simulate --task two_moons -n $rows --out whole --quiet
"$nrec" export disk/campaign --out a.npz --quiet > /dev/null
"$nrec" export whole --out b.npz --quiet > /dev/null
cmp a.npz b.npz && echo "after space was freed: equal to a campaign that was never short of it"
