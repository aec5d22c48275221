#!/bin/bash
# Everything that needs a real GPU, in under eight minutes, as root on a machine that has the driver and Python 3.
#   OUT=/some/folder bash shim/bench/gpu_check.sh
# The programs and the library come prebuilt: make -C shim release bench, and carry shim/build/<machine>/ along.
# Leaves at most eight files in $OUT.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
BUILD=$HERE/../build/$(uname -m)
LIB=$(realpath "$BUILD/libvgpu.so")
: "${OUT:=$HERE/results/$(date -u +%F)-gpu-check}"
mkdir -p "$OUT"
WORK=$(mktemp -d)
exec > >(tee "$OUT/log.txt") 2>&1
say() { echo "== $(date -u +%T) $*"; }

say machine
nvidia-smi -L; nvidia-smi --query-gpu=driver_version,memory.total,memory.used --format=csv,noheader
sha256sum "$LIB"

say granularity of the driver, without the library
timeout 60 "$BUILD/bench/granularity" > "$OUT/granularity.json"; echo "rc $?"; cat "$OUT/granularity.json"

say exact
for limit in 4g 8g; do timeout 120 python3 "$HERE/run.py" exact --limit $limit --out "$OUT/exact-$limit.json"; done
python3 - "$OUT" <<'P'
import json, sys
for limit in ("4g", "8g"):
    try: data = json.load(open(f"{sys.argv[1]}/exact-{limit}.json"))
    except OSError as error: print(error); continue
    for r in data["rows"]:
        print(limit, *(f"{k}={r.get(k)}" for k in ("api", "step", "taken_mib", "missing_mib", "context_mib", "refused_with", "free_full", "own_full", "ns_each", "failed") if k in r))
    print("two at once", [(r.get("taken"), r.get("refused_with")) for r in data["two_at_once"]])
P

say nvidia-smi in the limited environment, with a process that holds memory
export CUDA_DEVICE_MEMORY_SHARED_CACHE=$WORK/smi.cache CUDA_DEVICE_MEMORY_LIMIT=5120m CUDA_DEVICE_SM_LIMIT=50
{
  LD_PRELOAD=$LIB python3 - <<'P' &
import ctypes, time
cu = ctypes.CDLL("libcuda.so.1"); context = ctypes.c_void_p(); p = ctypes.c_uint64()
cu.cuInit(0); cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); cu.cuCtxSetCurrent(context)
print("alloc 1 GiB:", cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(1 << 30)), flush=True); time.sleep(20)
P
  holder=$!
  sleep 6
  for words in "" "-q" "-L" "--query-gpu=memory.total,memory.used,memory.free --format=csv" "--query-compute-apps=pid,used_memory --format=csv" "-q -x" "-q -d MEMORY"; do
    echo "#### nvidia-smi $words"
    LD_PRELOAD=$LIB nvidia-smi $words | if [ "$words" = "-q -x" ]; then python3 -c 'import sys,xml.dom.minidom as m; t=sys.stdin.read(); m.parseString(t); print("XML parses,",len(t),"bytes")'; else cat; fi
  done
  echo "#### the real figures"; nvidia-smi --query-compute-apps=pid,used_memory --format=csv
  wait $holder
} > "$OUT/smi.txt" 2>&1
grep -A 5 "HAMI-core" "$OUT/smi.txt"; grep MiB "$OUT/smi.txt" | head -12
unset CUDA_DEVICE_MEMORY_SHARED_CACHE CUDA_DEVICE_MEMORY_LIMIT CUDA_DEVICE_SM_LIMIT

say overhead
timeout 200 python3 "$HERE/run.py" overhead --pairs "${PAIRS:-10}" --seconds 0.3 --limit 8g --out "$OUT/overhead.json"
python3 - "$OUT/overhead.json" <<'P'
import json, sys
for name, row in json.load(open(sys.argv[1]))["summary"].items(): print(name, row)
P

say PyTorch
if python3 -c 'import torch' 2>/dev/null; then
  for mode in eager expandable async graph compile; do
    timeout 60 python3 "$HERE/torch_check.py" $mode 2>&1 | tail -1
    CUDA_DEVICE_MEMORY_SHARED_CACHE=$WORK/torch.cache CUDA_DEVICE_MEMORY_LIMIT=8g LD_PRELOAD=$LIB timeout 60 python3 "$HERE/torch_check.py" $mode 2>&1 | tail -3
  done | tee "$OUT/torch.txt"
else
  echo "no PyTorch here"
fi

say entry points against the tables
python3 - "$HERE/../hooks" <<'P'
import re, subprocess, sys
from pathlib import Path
hooks = set(re.findall(r"^HOOK\(\w+, (\w+)", Path(sys.argv[1], "hooks.def").read_text(), re.M))
passed = {line.split("\t")[0] for line in Path(sys.argv[1], "pass.tsv").read_text().splitlines()[1:]}
for name, prefix in (("libcuda.so.1", "cu"), ("libnvidia-ml.so.1", "nvml")):
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    path = next((line.split()[-1] for line in listed.splitlines() if line.split()[:1] == [name]), None)
    if not path: print(name, "not found"); continue
    strings = set(re.findall(rb"\0(" + prefix.encode() + rb"[A-Z]\w+)(?=\0)", Path(path).read_bytes()))
    print(name, "names neither hooked nor passed (strings, not all are exports):", sorted(s.decode() for s in strings if s.decode() not in hooks | passed)[:40])
P
rm -rf "$WORK"
say done
