#!/bin/bash
# The core limit on a real GPU, in under eight minutes, as root on a machine with the driver and Python 3 (and PyTorch).
#   OUT=/some/folder bash shim/bench/core_check.sh [CELL...]
# The programs and the library come prebuilt: make -C shim release bench, and carry shim/build/<machine>/ along.
# Cells that are in $OUT/core.jsonl already (put an earlier run's file there) are not measured again, so the whole plan, some
# 20 minutes, takes three runs.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
BUILD=$(cd "$HERE/../build/$(uname -m)" && pwd)
: "${OUT:=$HERE/results/$(date -u +%F)-core-check}"
mkdir -p "$OUT" && OUT=$(cd "$OUT" && pwd)
exec > >(tee -a "$OUT/log.txt") 2>&1
echo "== $(date -u +%T) machine"
nvidia-smi --query-gpu=name,driver_version,memory.used,clocks.sm,persistence_mode --format=csv,noheader
nproc; uname -r; sha256sum "$BUILD/libvgpu.so"

echo "== $(date -u +%T) cells"
timeout "${LIMIT:-540}" python3 "$HERE/core.py" --budget "${BUDGET:-460}" --library "$BUILD/libvgpu.so" --programs "$BUILD/bench" \
  --out "$OUT/core.jsonl" ${1:+--only "$@"}; echo "rc $?"
echo "== $(date -u +%T) done"
