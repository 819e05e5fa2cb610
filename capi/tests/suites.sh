# The suites of capi/tests/run beside conformance.
# shellcheck shell=bash disable=SC2154 # DIR, DEV, TMP are the runner's

# Two processes, each on a library of its own, both ways round.
suite_cross() {
    local server client libraries=(ours) differences=none
    if debian_connects; then libraries=(ours debian); fi
    [[ $DEV != siw ]] || differences=siw
    [[ -z ${RPMA_TEST_DAX:-} ]] || differences=dax
    for server in "${libraries[@]}"; do
        for client in "${libraries[@]}"; do
            pair_of_processes "$server" "$client"
            compare "server on $server, client on $client, $DEV: the server" cross_server "$differences" "$TMP/server"
            compare "server on $server, client on $client, $DEV: the client" cross_client "$differences" "$TMP/client"
        done
    done
    say_skipped "cross-library peers"
}

# pair_of_processes SERVER CLIENT: by their libraries
pair_of_processes() {
    local server tries=200
    with debian "$1" cross server >"$TMP/server" 2>"$TMP/server.err" &
    server=$!
    while ((tries-- > 0)) && ! grep -q listening "$TMP/server.err"; do sleep 0.1; done
    with debian "$2" cross client >"$TMP/client" 2>"$TMP/client.err" || echo "cross_client.ends = $?" >>"$TMP/client"
    wait $server || echo "cross_server.ends = $?" >>"$TMP/server"
    cat "$TMP/server.err" "$TMP/client.err" | grep -v '^listening$' || true
}

# What loading does, dlclose and fork, and the functions of before 1.0.
suite_load() {
    local mode differences=none
    [[ $DEV != siw ]] || differences=siw
    for mode in nothing log again; do
        with ours ours load "$mode" "$DIR/ours/lib/librpma.so.0" >"$TMP/load" 2>&1 || echo "load_$mode.ends = $?" >>"$TMP/load"
        compare "load $mode on $DEV" "load_$mode" none "$TMP/load"
    done
    with debian debian load log "$DIR/debian/lib/librpma.so.0" >"$TMP/load" 2>&1 || echo "load_log.ends = $?" >>"$TMP/load"
    compare "load log, Debian's library" load_log debian "$TMP/load"
    with ours ours forks >"$TMP/forks" 2>&1 || echo "forks.ends = $?" >>"$TMP/forks"
    compare "fork on $DEV" forks none "$TMP/forks"
    with ours ours ours-old >"$TMP/old" 2>&1 || echo "old.ends = $?" >>"$TMP/old"
    compare "the older functions on $DEV" old "$differences" "$TMP/old"
}

suite_threads() {
    if [[ $DEV == siw ]]; then
        echo "SKIP: eight threads on siw: it fails to make completion queues for several threads at once (ENOSPC)"
        passed=$((passed + 1))
        return
    fi
    LIMIT=300 with debian ours threads >"$TMP/threads" 2>&1 || echo "threads.ends = $?" >>"$TMP/threads"
    compare "eight threads on $DEV" threads none "$TMP/threads"
}

# No error and no definite leak, in what works and in what fails.
suite_valgrind() {
    local cases=(
        nulls_with_handles contexts registration connecting private_data rejecting nobody_listens used_up bad_accept bad_queues
        endpoint_first not_blocking operations outside early_receive flushing flush_refused flush_dram atomic_writes receive_cq
        shared_channel shared_receives shared_both
    )
    local name status=0
    RPMA_TEST_PATIENCE=600 LD_LIBRARY_PATH=$DIR/ours/lib timeout -k 5 1200 valgrind --quiet --error-exitcode=99 --leak-check=full \
        --show-leak-kinds=definite --errors-for-leak-kinds=definite --suppressions="$HERE/valgrind.supp" \
        "$DIR/bin/debian/conformance" "${cases[@]}" >"$TMP/valgrind" 2>"$TMP/valgrind.err" || status=$?
    if [[ $status -eq 0 ]]; then
        pass "no error and no leak in ${#cases[@]} cases on $DEV"
    else
        fail "valgrind on $DEV: status $status" "$(head -n 100 "$TMP/valgrind.err")"
    fi
    local differences=none
    [[ $DEV != siw ]] || differences=siw
    for name in "${cases[@]}"; do
        compare "$name under valgrind on $DEV" "$name" "$differences" "$TMP/valgrind"
    done
}
