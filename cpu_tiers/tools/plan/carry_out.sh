# shellcheck shell=sh disable=SC2154
set -u
usage="usage: sh $0 [--parallel N]"
while [ $# -gt 0 ]; do
    case $1 in
    --parallel) parallel=${2:-} && shift $(($# > 1 ? 2 : 1)) ;;
    --parallel=*) parallel=${1#*=} && shift ;;
    *) echo "$usage" >&2 && exit 2 ;;
    esac
done
case $parallel in '' | 0* | *[!0-9]*) echo "$usage; N is a number from 1" >&2 && exit 2 ;; esac

ended=$(mktemp -d) || exit 1 # a file for each step that has ended, with its exit status
begun=
trap 'rm -rf "$ended"' EXIT
trap 'stop; exit 130' INT
trap 'stop; exit 143' TERM
limit=$(command -v timeout) && limit="$limit 120" # no answer at all is a failure, too

say() { printf '%s\n' "$*" >&2; }

stop() {
    for each in $begun; do kill "$(cat "$ended/$each.pid")" 2>/dev/null; done
    say "Stopped. Nova goes on with what has begun: run this script again to see."
}

client() { ${limit:-} openstack "$@"; }

# Sets status, task and host to what Nova says of the server.
look() {
    answer=$(client --os-compute-api-version 2.47 server show -f json -c status \
        -c OS-EXT-STS:task_state -c OS-EXT-SRV-ATTR:host -- "$server") || return 1
    status=$(field status) task=$(field OS-EXT-STS:task_state) host=$(field OS-EXT-SRV-ATTR:host)
    [ -n "$status" ] && [ -n "$host" ]
}

field() { printf '%s\n' "$answer" | sed -n "s|^ *\"$1\": \"\\(.*\\)\",*\$|\\1|p"; }

# Whether Nova works on the server.
is_moving() {
    case $status in MIGRATING | RESIZE) return 0 ;; esac
    [ -n "$task" ]
}

# fail WORDS: says why a step ends, what Nova says, and what to do.
fail() {
    say "Step $number, server $server: $*"
    client server show -f value -c fault -- "$server" 2>/dev/null | sed 's/^/  Nova: /' >&2
    request=$(client --os-compute-api-version 2.51 server event list -f value -c 'Request ID' \
        -- "$server" 2>/dev/null | head -n 1)
    [ -z "$request" ] || client --os-compute-api-version 2.84 server event show -f value \
        -c action -c message -c events -- "$server" "$request" 2>/dev/null | sed 's/^/  Nova: /' >&2
    say "  Mend the cause, and run this script again: it skips what is done. If the cause stays," \
        "plan again. Log files of nova-conductor and nova-compute tell more."
    return 1
}

order() {
    case $kind in
    live) client --os-compute-api-version 2.30 server migrate --live-migration \
        "--host=$to" -- "$server" ;;
    cold) client --os-compute-api-version 2.56 server migrate "--host=$to" -- "$server" ;;
    # With --host, Nova finds no place whose disk a shared pool gives: nova-scheduler has only $to.
    live-unnamed) client --os-compute-api-version 2.30 server migrate --live-migration \
        -- "$server" ;;
    cold-unnamed) client --os-compute-api-version 2.56 server migrate -- "$server" ;;
    esac
}

# Has Nova move the server, and ends with 0 only if the server is seen on its host.
move() {
    look || { fail "Nova does not tell its state and its host" || return 1; }
    for later in "$@"; do
        [ "$host" != "$later" ] || { say "Step $number is done: a later step, too." && return 0; }
    done
    if [ "$host" = "$from" ] && ! is_moving; then
        : >"$ended/$number.begun"
        order || { fail "Nova refuses to migrate it" || return 1; }
    elif [ "$host" != "$from" ] && [ "$host" != "$to" ]; then
        fail "it is on $host, and the plan has it on $from: plan again" || return 1
    fi
    watch
}

watch() {
    end=$(($(date +%s) + seconds * parallel)) confirmed=
    while :; do
        if ! look; then
            status='unknown to this script' task='' host=
        elif [ "$status" = ERROR ]; then
            fail "it is on $host in state ERROR" || return 1
        elif ! is_moving && [ "$host" != "$to" ]; then
            fail "the migration has ended, and the server is on $host ($status), not on $to" ||
                return 1
        elif ! is_moving && [ "$status" = VERIFY_RESIZE ] && [ -z "$confirmed" ]; then
            client server migration confirm -- "$server" && confirmed=yes
        elif ! is_moving && [ "$status" != VERIFY_RESIZE ]; then
            say "Step $number is done: server $server is on $to ($status)."
            return 0
        fi
        [ "$(date +%s)" -lt "$end" ] || {
            fail "not done after $((seconds * parallel)) seconds: it is on ${host:-an unknown host}" \
                "($status${task:+, $task}), and is to be on $to" || return 1
        }
        sleep "${POLL:-5}"
    done
}

# A step whose process is gone without an answer has failed.
has_ended() { [ -s "$ended/$1" ] || ! kill -0 "$(cat "$ended/$1.pid")" 2>/dev/null; }

# Waits until nova-scheduler knows that servers of a group have left the host of a step.
settle() {
    [ "$settling" -gt 0 ] || return 0
    for each in $1; do
        [ -e "$ended/$each.begun" ] || continue # it was done before this script
        say "Step $number waits $settling seconds: nova-scheduler believes until then that a" \
            "server of the same group or hint is still on $to."
        sleep "${SETTLE:-$settling}"
        return 0
    done
}

running() {
    count=0
    for each in $begun; do has_ended "$each" || count=$((count + 1)); done
    echo "$count"
}

check() {
    for each in $begun; do
        has_ended "$each" || continue
        [ "$(cat "$ended/$each" 2>/dev/null)" = 0 ] || finish
    done
}

# step NUMBER "AFTER…" (live|cold)[-unnamed] SERVER FROM TO SECONDS SETTLING [LATER…]: begins a step
# when it may begin, SETTLING seconds after the steps that it waits for. LATER are the hosts of the
# server after later steps.
step() {
    number=$1 after=$2 kind=$3 server=$4 from=$5 to=$6 seconds=$7 settling=$8
    shift 8
    for each in $after; do until has_ended "$each"; do sleep 1; done; done
    check
    settle "$after"
    while [ "$(running)" -ge "$parallel" ]; do sleep 1; done
    check
    (
        move "$@" >&2
        echo $? >"$ended/$number"
    ) &
    echo $! >"$ended/$number.pid"
    begun="$begun $number"
}

# Ends with 1 if a step failed, after the steps that have begun.
finish() {
    wait
    for each in $begun; do
        [ "$(cat "$ended/$each")" = 0 ] || { say "Not all is done: see above." && exit 1; }
    done
    say "All is done."
    exit 0
}

# Keeps nova-scheduler from a host that is to become empty.
disable() {
    client compute service set --disable --disable-reason "cpu-tiers plan" -- \
        "$1" nova-compute || { say "Host $1 cannot be disabled, so nothing was begun." && exit 1; }
    say "Host $1 takes no new servers: openstack compute service set --enable ends this."
}
