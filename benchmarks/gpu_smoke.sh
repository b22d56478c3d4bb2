#!/bin/sh
# Two updates of a decoder of 0.5 billion parameters with random weights, and tokens a second of each phase.
# On a GPU: bfloat16 and fused attention, a few minutes. `--toy` is the same at a size for processors.
set -eu
cd "$(dirname "$0")/.."
exec "${PYTHON:-python}" benchmarks/gpu_smoke.py "$@"
