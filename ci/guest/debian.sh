# Makes small Debian systems. Sourced after ci/lib.sh.
# shellcheck shell=bash

# The release that the guest and ci/msrv are made of.
# shellcheck disable=SC2034 # for those who source this
SUITE=trixie

# debian_mirror: the address of a Debian archive: from the environment, from this machine's own apt, or,
# where that is Ubuntu's, the one that mmdebstrap itself would take.
debian_mirror() {
    local mirror=${RPMA_DEBIAN_MIRROR:-}
    # The security archive has the same origin, but other suites.
    # shellcheck disable=SC2016 # apt's own format
    [[ -n $mirror ]] ||
        mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(SITE)' 'Created-By: Packages' 2>/dev/null |
            awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }') || true
    [[ -n $mirror ]] ||
        mirror=$(sed -n "s/^ *my \$mirror *= '\(.*\)';\$/\1/p" "$(command -v mmdebstrap)" | head -n 1)
    [[ -n $mirror ]] || die 1 "this machine's apt knows no Debian archive: set RPMA_DEBIAN_MIRROR to the address of one"
    printf '%s\n' "$mirror"
}

# debian_root VARIANT PACKAGES HOOK SUITE…: a tar archive of a small Debian on stdout. HOOK, if not empty, is a
# command of the shell that finds the folder in $1 while apt can still be used there. The first SUITE is the
# system's, apt knows the others too.
debian_root() {
    local variant=$1 packages=$2 hook=$3 suite mirror proxy sources=()
    shift 3
    mirror=$(debian_mirror)
    for suite; do
        # A mirror can be a snapshot, whose newer suites have a date of expiry.
        sources+=("deb [check-valid-until=no] $mirror $suite main")
    done
    local options=(
        --quiet "--variant=$variant" --format=tar
        --aptopt='Acquire::Languages "none"'
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*'
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt=force-unsafe-io
    )
    [[ -z $packages ]] || options+=("--include=$packages")
    [[ -z $hook ]] || options+=("--customize-hook=$hook")
    proxy=$(apt-config shell P Acquire::http::Proxy 2>/dev/null) || true
    if [[ -n $proxy ]]; then
        local P
        eval "$proxy"
        options+=(--aptopt="Acquire::http::Proxy \"$P\"")
    fi
    # /tmp may be small; but other users' homes cannot be entered from a user namespace.
    [[ $EUID -ne 0 ]] || export TMPDIR=$CACHE
    mmdebstrap "${options[@]}" "$1" - "${sources[@]}"
}
