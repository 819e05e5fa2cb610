# Shared by the scripts in this folder: source it, do not run it.
# shellcheck shell=bash

set -euo pipefail

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
CACHE=${RPMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rpma}
PROG=${0##*/}

say() { printf '%s: %s\n' "$PROG" "$*" >&2; }

# die STATUS MESSAGE…
die() {
    local status=$1
    shift
    say "$*"
    exit "$status"
}

have() { command -v "$1" >/dev/null 2>&1; }

# as_root COMMAND…: runs it as root; prints it and gives up where that cannot be done.
as_root() {
    if [[ $EUID -eq 0 ]]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    else
        die 1 "not root and no sudo here; as root, run: $*"
    fi
}

# Rust may be installed and still not be on the PATH of a shell without a login.
add_rust_to_path() {
    local dir
    have cargo && return
    for dir in "${CARGO_HOME:-$HOME/.cargo}/bin" $(printf '%s\n' /usr/lib/rust-*/bin | sort -Vr); do
        if [[ -x $dir/cargo ]]; then
            PATH=$dir:$PATH
            return
        fi
    done
}
add_rust_to_path

# covered PATH DIR…: whether PATH is one of the DIRs or lies below one.
covered() {
    local path=$1 dir
    shift
    for dir in "$@"; do
        [[ $path == "$dir" || $path == "${dir%/}"/* ]] && return 0
    done
    return 1
}

# guest_dir: where the guest of this recipe lies, or will lie, in the cache.
guest_dir() {
    local key
    key=$(cat "$REPO"/ci/guest/{build,debian.sh,packages,modules,tsc-khz.c} | sha256sum)
    printf '%s/guest-%s\n' "$CACHE" "${key:0:12}"
}
