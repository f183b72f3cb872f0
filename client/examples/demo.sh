#!/usr/bin/env bash
# Runs an example on a server of its own, whose clock is virtual. Without a name it finds
# the sessions in a web access log, and takes the clock through the log by the log's own
# times.
set -euo pipefail

readonly start_tries_max=200 # of 50 ms each
readonly made_lines=5000
readonly made_visitors=60

example=
case ${2:-} in
  acker | eventlog | join) example=$2 ;;
esac
if (($# < 1)) || [[ -z $example && $# -gt 2 ]] || [[ $1 == -h || $1 == --help ]]; then
  printf 'usage: %s BUILD_DIR [LOG]\n' "$0"
  printf '       %s BUILD_DIR acker|eventlog|join [ARGUMENTS]\n' "$0"
  printf 'LOG: a web access log in Common or Combined format; without it, the one in\n'
  printf '../shared/data beside the project, or one made for the purpose.\n'
  (($# == 1)) && exit 0
  exit 2
fi

root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
readonly root build=$1
readonly sample=$root/../shared/data/access.log
log=${2:-}
pids=()

say() { printf 'demo: %s\n' "$*"; }
die() {
  printf 'demo: %s\n' "$*" >&2
  exit 2
}

finish() {
  local pid
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$work"
}

# make_log: a log of visitors who come, look at some pages and go; some of its lines
# are late, and one is no log line at all.
make_log() {
  local time=1431857103 line visitor late date
  RANDOM=7
  for ((line = 1; line <= made_lines; line++)); do
    ((time += RANDOM % 20 == 0 ? RANDOM % 1200 : RANDOM % 4))
    visitor=$((RANDOM % made_visitors))
    late=$((RANDOM % 8 == 0 ? RANDOM % 90 : 0))
    TZ=UTC LC_ALL=C printf -v date '%(%d/%b/%Y:%H:%M:%S +0000)T' $((time - late))
    printf '192.0.2.%d - - [%s] "GET /page/%d HTTP/1.1" 200 %d "-" "demo"\n' \
      "$visitor" "$date" $((RANDOM % 100)) $((RANDOM * 3))
  done
  printf 'this line is not one of a log\n'
}

# server_address FILE: prints the address that the server in this log listens on.
server_address() {
  sed -n '/"event":"server_started"/s/.*"address":"\([^"]*\)".*/\1/p' "$1"
}

start_server() {
  local try
  : >"$work/server.log" # there before it is read
  "$build/server/timecached" --listen 127.0.0.1:0 --virtual-clock --log-format=json \
    2>"$work/server.log" &
  pids=($!)
  for ((try = 0; try < start_tries_max; try++)); do
    address=$(server_address "$work/server.log")
    [[ -n $address ]] && return
    kill -0 "${pids[0]}" 2>/dev/null || break
    sleep 0.05
  done
  cat "$work/server.log" >&2
  die "the server did not start: its log is above"
}

programs=(server/timecached "client/examples/${example:-sessionize}")
for program in "${programs[@]}"; do
  [[ -x $build/$program ]] || die "$build/$program is not there: build it with ./dev build"
done

work=$(mktemp -d)
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [[ -n $example ]]; then
  start_server
  # In the background, as below; there it would have no standard input but this.
  exec 4<&0
  "$build/client/examples/$example" --address "$address" "${@:3}" <&4 &
  pids=($! "${pids[@]}")
  status=0
  wait "${pids[0]}" || status=$?
  pids=("${pids[1]}")
  exit "$status"
fi

if [[ -z $log && -r $sample ]]; then
  log=$(readlink -f "$sample")
elif [[ -z $log ]]; then
  log=$work/access.log
  make_log >"$log"
fi
[[ -f $log && -r $log ]] || die "$log: no log that can be read; usage: ./dev demo [LOG]"

start_server
say "a server on a virtual clock at $address"
say "the sessions in $log, each ended by 30 minutes without a request:"
# In the background, because a signal to a shell waits for what is in the foreground.
# What it says is part of what we say.
exec 3>&1
"$build/client/examples/sessionize" --address "$address" --json "$log" 2>&3 >"$work/sessions" &
pids=($! "${pids[@]}") # in the order in which they are to end
wait "${pids[0]}"
pids=("${pids[1]}")
say "the first of them:"
head -n 3 "$work/sessions"
