# What the steps with a device have in common.
# shellcheck shell=bash

# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

# What is run again with a signal to every thread each 2 ms: what connects and what waits.
ALARMED='device_(addresses|async|completion|connect|waits|wakers)'

# ring OPTIONS…: ci/vm with these options checks the guest's device, then runs every device test in the same boot, and some of
# them again among signals.
ring() {
    local list
    mkdir -p "${CARGO_TARGET_DIR:-$REPO/target}"
    list=$(mktemp "${CARGO_TARGET_DIR:-$REPO/target}/device-tests.XXXXXX")
    # shellcheck disable=SC2064 # the name as it is now
    trap "rm -f '$list' '$list.alarmed'" EXIT
    "$REPO/ci/test-binaries" device >"$list"
    grep -P "^$ALARMED\t" "$list" >"$list.alarmed"
    # shellcheck disable=SC2016 # for the guest's shell
    "$REPO/ci/vm" --timeout 2400 "$@" -- bash -c '
        ci/guest/check && ci/run-binaries "$1" || exit
        for handler in plain restart; do
            printf "\n--- among signals, handler: %s\n" "$handler"
            RPMA_TEST_ALARM=$handler ci/run-binaries "$1.alarmed" || exit
        done' ring "$list"
}
