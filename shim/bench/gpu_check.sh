#!/bin/bash
# The memory side on a real GPU, in under seven minutes, as root on a machine that has the driver and Python 3.
#   OUT=/some/folder [VGPU_LIB=/path/to/libvgpu.so] bash shim/bench/gpu_check.sh
# The programs and the library come prebuilt: make -C shim release bench, and carry shim/build/<machine>/ along.
# Leaves eight files in $OUT: log.txt, which ends with a summary, and the figures. Ends with 1 if anything does not hold.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
BUILD=$(realpath "$HERE/../build/$(uname -m)")
LIB=$(realpath "${VGPU_LIB:-$BUILD/libvgpu.so}")
: "${OUT:=$HERE/results/$(date -u +%F)-gpu-check}"
mkdir -p "$OUT"
exec > >(tee "$OUT/log.txt") 2>&1
say() { echo "== $(date -u +%T) $*"; }
measure() { say "$*"; timeout "$1" python3 "$HERE/run.py" "${@:2}" --library "$LIB" | head -c 3000; }

say machine
nvidia-smi --query-gpu=name,uuid,driver_version,memory.total,memory.used --format=csv,noheader
sha256sum "$LIB"
say granularity of the driver, without the library
timeout 30 "$BUILD/bench/granularity" > "$OUT/granularity.json"; echo "rc $?"

measure 80 exact --limit 4g --out "$OUT/exact-4g.json"
measure 40 exact --limit 8g --together 0 --out "$OUT/exact-8g.json"
measure 30 view --out "$OUT/view.json"
measure 100 overhead --limit 8g --seconds "${SECONDS_EACH:-2.5}" --out "$OUT/overhead.json"
measure 110 processes --limit 8g --out "$OUT/processes.json"
say frameworks
timeout 170 python3 "$HERE/frameworks.py" --library "$LIB" --out "$OUT/frameworks.json" > /dev/null; echo "rc $?"

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

say summary
cd "$OUT" && python3 "$HERE/run.py" summary exact-4g.json exact-8g.json view.json processes.json overhead.json frameworks.json | head -c 6000
result=${PIPESTATUS[0]}
say done
exit $result
