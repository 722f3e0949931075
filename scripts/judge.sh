#!/usr/bin/env bash
# What AMD's compiler makes of every shipped tile of the fused kernels, without a card: fails on spilled
# registers and on fewer waves than stated. Needs Debian's or Ubuntu's Mesa 22 to 25.
#
#     scripts/judge.sh                 RDNA2, and of RDNA3 what Mesa 22's compiler can be trusted with
#     scripts/judge.sh --newer FOLDER  RDNA3 by the Mesa that scripts/newer-mesa.sh has put there
set -euo pipefail
cd "$(dirname "$0")/.."

icd=$(echo /usr/share/vulkan/icd.d/radeon_icd*.json)
libraries=${LD_LIBRARY_PATH:-}
if [ "${1:-}" = --newer ]; then
    icd=$2/radeon.json
    libraries=$2/root/usr/lib/x86_64-linux-gnu
elif [ ! -e "$icd" ]; then
    scripts/apt-install.sh libvulkan1 mesa-vulkan-drivers
    icd=$(echo /usr/share/vulkan/icd.d/radeon_icd*.json)
fi
cargo build --quiet --locked --package wgpu-attention-judge
judge=${CARGO_TARGET_DIR:-target}/debug/wgpu-attention-judge

# Mesa 22 calls the first RDNA3 card GFX1100, later ones NAVI31; an unknown name ends the process.
card() {
    RADV_FORCE_FAMILY=$1 MESA_SHADER_CACHE_DISABLE=1 VK_DRIVER_FILES=$icd VK_ICD_FILENAMES=$icd \
        LD_LIBRARY_PATH=$libraries XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/tmp} "$judge" "${2:-}"
}

if [ "${1:-}" = --newer ]; then
    card NAVI21
    card NAVI31
    card NAVI33
else
    card NAVI21
    # Its RDNA3 spills in f16 what later versions do not.
    rdna3=GFX1100
    if (card NAVI31 'no such tile') >/dev/null 2>&1; then rdna3=NAVI31; fi
    card "$rdna3" F32
fi
