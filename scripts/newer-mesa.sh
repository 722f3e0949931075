#!/usr/bin/env bash
# Unpacks the Vulkan drivers of a newer Debian beside the system's own, which stay as they are: for
# checks that need a newer compiler, or a software adapter with cooperative matrices.
#
#     scripts/newer-mesa.sh bookworm-backports FOLDER    Mesa 25
#     scripts/newer-mesa.sh sid FOLDER                   Mesa 26, with the C library it needs
#     FOLDER/run PROGRAM ..                              the program on that Mesa's llvmpipe
#
# Packages come from the mirror that apt uses, and are not installed.
set -euo pipefail
suite=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)

site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -1)
suites=$suite
case "$suite" in *-backports) suites="${suite%-backports} $suite" ;; esac
mkdir -p "$folder"/state/lists/partial "$folder"/cache/archives/partial "$folder"/root
: >"$folder/status"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
for one in $suites; do echo "deb [signed-by=$keyring] $site $one main"; done >"$folder/sources.list"
get() {
    apt-get -qq -o Dir::State="$folder/state" -o Dir::State::status="$folder/status" \
        -o Dir::Cache="$folder/cache" -o Dir::Etc::sourcelist="$folder/sources.list" \
        -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User= \
        -o Acquire::Check-Valid-Until=false "$@"
}
get update
get install -y --no-install-recommends --download-only --target-release "$suite" \
    mesa-vulkan-drivers libvulkan1 libgcc-s1 libstdc++6
for package in "$folder"/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$folder/root"
done

libraries=$folder/root/usr/lib/x86_64-linux-gnu
[ -d "$folder/root/lib/x86_64-linux-gnu" ] && cp -a "$folder"/root/lib/x86_64-linux-gnu/. "$libraries"
for driver in lvp radeon; do
    # An absolute path, since nothing looks for libraries there.
    sed "s#\"library_path\": \"[^\"]*/\{0,1\}\(libvulkan_[a-z]*.so\)\"#\"library_path\": \"$libraries/\1\"#" \
        "$folder"/root/usr/share/vulkan/icd.d/${driver}_icd*.json >"$folder/$driver.json"
done
cat >"$folder/run" <<END
#!/bin/sh
# Runs a program on this folder's llvmpipe.
icd=$folder/lvp.json
exec env VK_DRIVER_FILES=\$icd VK_ICD_FILENAMES=\$icd XDG_RUNTIME_DIR=\${XDG_RUNTIME_DIR:-/tmp} \\
    $libraries/ld-linux-x86-64.so.2 --library-path $libraries "\$@"
END
chmod +x "$folder/run"
