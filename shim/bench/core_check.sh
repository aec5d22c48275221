#!/bin/bash
# The core limit's first cells on a real GPU, in under eight minutes, as root on a machine with the driver and Python 3.
#   OUT=/some/folder bash shim/bench/core_check.sh [CELL...]
# The programs and the library come prebuilt: make -C shim release bench, and carry shim/build/<machine>/ along.
# Cells that are in $OUT/core.jsonl already (put an earlier run's file there) are not measured again.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
BUILD=$(cd "$HERE/../build/$(uname -m)" && pwd)
: "${OUT:=$HERE/results/$(date -u +%F)-core-check}"
mkdir -p "$OUT" && OUT=$(cd "$OUT" && pwd)
exec > >(tee "$OUT/log.txt") 2>&1
echo "== $(date -u +%T) machine"
nvidia-smi --query-gpu=name,driver_version,memory.used,clocks.sm,persistence_mode --format=csv,noheader
nproc; uname -r; sha256sum "$BUILD/libvgpu.so"
mkdir -p /tmp/vgpulock && chmod 1777 /tmp/vgpulock

echo "== $(date -u +%T) one program, plain and under the shim"
timeout 60 "$BUILD/bench/share" dense,20,100,1; echo "rc $?"
REGION=$(mktemp -d)
CUDA_DEVICE_MEMORY_SHARED_CACHE=$REGION/v.cache CUDA_DEVICE_SM_LIMIT=50 GPU_CORE_UTILIZATION_POLICY=force LD_PRELOAD=$BUILD/libvgpu.so \
  timeout 60 "$BUILD/bench/share" dense,20,50,2 dense,1000,50,2; echo "rc $?"
rm -rf "$REGION"

echo "== $(date -u +%T) cells"
timeout "${LIMIT:-450}" python3 "$HERE/core.py" --budget "${BUDGET:-400}" --library "$BUILD/libvgpu.so" --programs "$BUILD/bench" \
  --out "$OUT/core.jsonl" ${1:+--only "$@"}; echo "rc $?"
echo "== $(date -u +%T) done"
