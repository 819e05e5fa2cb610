# What the steps with a device have in common.
# shellcheck shell=bash

# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

# ring OPTIONS…: ci/vm with these options checks the guest's device, then runs every device test in the same boot.
ring() {
    local list
    mkdir -p "${CARGO_TARGET_DIR:-$REPO/target}"
    list=$(mktemp "${CARGO_TARGET_DIR:-$REPO/target}/device-tests.XXXXXX")
    # shellcheck disable=SC2064 # the name as it is now
    trap "rm -f '$list'" EXIT
    "$REPO/ci/test-binaries" device >"$list"
    # shellcheck disable=SC2016 # for the guest's shell
    "$REPO/ci/vm" --timeout 1500 "$@" -- bash -c 'ci/guest/check && ci/run-binaries "$1"' ring "$list"
}
