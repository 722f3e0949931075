#!/bin/sh
# Fails if a dependency that users compile needs a newer Rust than Cargo.toml states. (Newer
# language or library use of our own is clippy's to find: its `incompatible_msrv`.)
set -eu
cargo metadata --format-version 1 --locked | python3 -c '
import json, sys

meta = json.load(sys.stdin)
packages = {p["id"]: p for p in meta["packages"]}
nodes = {n["id"]: n for n in meta["resolve"]["nodes"]}
root = meta["resolve"]["root"]
version = lambda text: tuple((int(x) for x in (text or "0").split("."))) + (0,)
stated = packages[root]["rust_version"]

# What is reached by normal and build dependencies, not by dev ones.
seen, queue = set(), [root]
while queue:
    node = queue.pop()
    if node in seen:
        continue
    seen.add(node)
    for dep in nodes[node]["deps"]:
        if any(kind["kind"] != "dev" for kind in dep["dep_kinds"]):
            queue.append(dep["pkg"])
newer = [(packages[p]["name"], packages[p]["rust_version"]) for p in seen
         if version(packages[p]["rust_version"])[:2] > version(stated)[:2]]
for name, needs in newer:
    print(f"{name} needs Rust {needs}, Cargo.toml states {stated}")
if not newer:
    print(f"{len(seen) - 1} dependencies, none needs more than the stated Rust {stated}")
sys.exit(bool(newer))
'
