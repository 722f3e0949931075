# Sourced by web/build and web/test, at the root of the project: Rust to wasm, and wasm to what a
# page imports.

triple=wasm32-unknown-unknown
# Not the folder of native builds: another compiler may build here.
wasm_target=$PWD/target/wasm
tools=$PWD/target/web/tools

say() { printf 'web: %s\n' "$*" >&2; }

# Chooses who compiles; `std` is what cargo must be told for it.
choose_compiler() {
    local sysroot source
    std=()
    sysroot=$(rustc --print sysroot)
    source=lib/rustlib/src/rust/library/std/Cargo.toml
    if ls "$sysroot/lib/rustlib/$triple/lib"/libstd-*.rlib >/dev/null 2>&1; then
        return
    fi
    std=(-Z build-std=std,panic_abort)
    export RUSTC_BOOTSTRAP=1
    if [ -e "$sysroot/$source" ]; then
        say "the standard library from source, by $(rustc --version)"
        return
    fi
    if ! [ -e "/usr/$source" ] || ! [ -x /usr/bin/rustc ]; then
        if ! scripts/apt-install.sh rustc-web rust-web-src; then
            say "no standard library for wasm. Install it, then run this again:"
            say "  rustup              rustup target add $triple"
            say "  Debian, as root     apt-get install rustc-web rust-web-src"
            exit 1
        fi
    fi
    export RUSTC=/usr/bin/rustc
    say "the standard library from source, by Debian's $($RUSTC --version)"
    choose_linker "$sysroot"
}

# Debian's rustc-web brings no linker for wasm.
choose_linker() {
    local linker
    for linker in "$1"/lib/rustlib/*/bin/rust-lld /usr/bin/wasm-ld /usr/bin/wasm-ld-*; do
        [ -x "$linker" ] && break
    done
    if ! [ -x "$linker" ]; then
        scripts/apt-install.sh lld
        linker=/usr/bin/wasm-ld
    fi
    export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker
}

# What a panic names: files by crate, never by where this machine keeps them.
short_paths() {
    local home=${CARGO_HOME:-$HOME/.cargo} from
    local flags=() roots=("$HOME" "$PWD" "$home/registry/src/"*/)
    roots+=("$("${RUSTC:-rustc}" --print sysroot)/lib/rustlib/src/rust")
    for from in "${roots[@]}"; do
        flags+=("--remap-path-prefix=${from%/}=.")
    done
    printf -v CARGO_ENCODED_RUSTFLAGS '%s\x1f' "${flags[@]}"
    export CARGO_ENCODED_RUSTFLAGS=${CARGO_ENCODED_RUSTFLAGS%?}
}

# compile ARGS...: cargo build of the web crate, in a subshell that keeps its settings to itself.
compile() (
    choose_compiler
    cargo fetch --quiet --locked --target "$triple"
    short_paths
    export CARGO_TARGET_DIR=$wasm_target
    cargo build --locked --package wgpu-attention-web --target "$triple" \
        ${std[@]+"${std[@]}"} "$@"
)

# bind FILE.wasm FOLDER: writes the module and its JavaScript. The two sides of wasm-bindgen talk
# only in exactly the same version.
bind() {
    local version bindgen
    version=$(sed -n '/^name = "wasm-bindgen"$/{n;s/^version = "\(.*\)"$/\1/p;}' Cargo.lock)
    for bindgen in wasm-bindgen "$tools/bin/wasm-bindgen"; do
        [ "$("$bindgen" --version 2>/dev/null)" = "wasm-bindgen $version" ] && break
        bindgen=
    done
    if [ -z "$bindgen" ]; then
        say "installing wasm-bindgen $version into ${tools#"$PWD/"}"
        # Unoptimised and without its test runner: half the time to build, a second more to run.
        # Not --locked: its own lock file names versions that were withdrawn.
        cargo install wasm-bindgen-cli --version "$version" --root "$tools" --quiet \
            --no-default-features --bin wasm-bindgen --debug --force
        bindgen=$tools/bin/wasm-bindgen
    fi
    "$bindgen" --target web --no-typescript --remove-name-section --remove-producers-section \
        --out-dir "$2" "$1"
}

# packages NAME: installs what web/package-lock.json lists, if NAME is not there yet; what only tests
# need is left out until they ask for it.
packages() {
    local omit=(--omit=dev)
    if [ "$1" != binaryen ] || [ -e web/node_modules/playwright-core ]; then
        omit=()
    fi
    if ! [ -e "web/node_modules/$1" ] ||
        [ web/package-lock.json -nt web/node_modules/.package-lock.json ]; then
        (cd web && npm ci ${omit[@]+"${omit[@]}"} >&2)
    fi
}
