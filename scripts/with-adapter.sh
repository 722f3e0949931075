#!/bin/sh
# Runs a command on a machine that has a Vulkan adapter, and makes sure that it has one.
#
#     scripts/with-adapter.sh cargo test
#
# On Debian and Ubuntu without an adapter, installs Mesa's software one (llvmpipe, no GPU needed)
# with apt. Elsewhere it says what to install. With a GPU, or on macOS and Windows, it changes
# nothing and the plain cargo commands do as well.
set -eu

say() { printf 'with-adapter: %s\n' "$*" >&2; }

# A driver is announced by a JSON file. It serves if it is a software driver or a GPU is there.
drivers() {
    for dir in /usr/share/vulkan/icd.d /etc/vulkan/icd.d /usr/local/share/vulkan/icd.d \
        "${XDG_DATA_HOME:-${HOME:-/}/.local/share}/vulkan/icd.d"; do
        for file in "$dir"/*.json; do
            [ -e "$file" ] && printf '%s\n' "$file"
        done
    done
    return 0
}

has_loader() {
    for dir in /lib /usr/lib /usr/local/lib /lib64 /usr/lib64 /lib/*-linux-* /usr/lib/*-linux-*; do
        [ -e "$dir/libvulkan.so.1" ] && return 0
    done
    return 1
}

has_gpu() {
    for node in /dev/dri/renderD* /dev/nvidiactl /dev/dxg; do
        [ -e "$node" ] && return 0
    done
    return 1
}

has_adapter() {
    has_loader || return 1
    [ -n "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] && return 0
    found=$(drivers)
    case "$found" in
        *lvp_icd* | *swiftshader*) return 0 ;;
        '') return 1 ;;
        *) has_gpu ;;
    esac
}

if [ "$(uname -s)" = Linux ] && ! has_adapter; then
    if ! command -v apt-get >/dev/null 2>&1; then
        say 'no Vulkan adapter found. Install a driver, then run this again:'
        say '  Fedora   dnf install vulkan-loader mesa-vulkan-drivers'
        say '  Arch     pacman -S vulkan-icd-loader vulkan-swrast'
        say '  Alpine   apk add vulkan-loader mesa-vulkan-swrast'
        exit 1
    fi
    say 'no Vulkan adapter found: installing the software one'
    "$(dirname "$0")/apt-install.sh" libvulkan1 mesa-vulkan-drivers
    if ! has_adapter; then
        say 'still no Vulkan adapter after installing mesa-vulkan-drivers'
        exit 1
    fi
fi

# Mesa complains on stderr when this is missing.
if [ -z "${XDG_RUNTIME_DIR:-}" ]; then
    XDG_RUNTIME_DIR=${TMPDIR:-/tmp}
    export XDG_RUNTIME_DIR
fi

if [ $# -gt 0 ]; then
    exec "$@"
fi
