#!/usr/bin/env bash
# Runs the benchmarks of a release build and prints what they mean.
#
# usage: run.sh BUILD_DIR [--quick] [--engine | --service] [--json FILE]
#
#   --quick      smaller maps and fewer repetitions: a minute or two instead of half an
#                hour
#   --engine     the engine's benchmarks only
#   --service    the service's only
#   --json FILE  write every single measurement as a line of JSON, too
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() {
  printf 'run.sh: %s\n' "$*" >&2
  exit 2
}

usage() {
  sed -n '2,/^set/{s/^# \{0,1\}//;/^set/!p}' "${BASH_SOURCE[0]}"
}

[[ ${1:-} != --help && ${1:-} != -h ]] || { usage; exit 0; }
(($# > 0)) || die "the build directory is missing; see --help"
build=$1
shift
quick=0 engine=1 service=1 json=
while (($# > 0)); do
  case $1 in
    --quick) quick=1 ;;
    --engine) service=0 ;;
    --service) engine=0 ;;
    --json)
      (($# > 1)) || die "--json needs a file"
      json=$2
      shift
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) die "$1: no such option; see --help" ;;
  esac
  shift
done

[[ -x $build/bench/engine_bench ]] ||
  die "no benchmarks in $build: build them, or start with ./dev bench"
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
if [[ -n $json ]]; then
  : >"$json" || die "cannot write $json"
fi

# measure NAME PROGRAM [ARGUMENTS...]: one run of a Google Benchmark.
measure() {
  local name=$1 program=$2
  shift 2
  local started=$SECONDS
  printf '%-28s' "$name" >&2
  "$build/bench/$program" "$@" --benchmark_format=json \
    >"$results/$name.json" 2>"$results/$name.log" || {
    cat "$results/$name.log" >&2
    exit 1
  }
  printf '%4d s\n' $((SECONDS - started)) >&2
}

run_engine() {
  local repetitions=3 most=10000000 memory=() i
  if ((quick)); then
    most=100000
    memory=(--quick)
  fi
  # Whole runs one after the other: what is compared is measured within one.
  for ((i = 1; i <= repetitions; ++i)); do
    measure "engine-$i-of-$repetitions" engine_bench --max_entries="$most"
    measure "locks-$i-of-$repetitions" engine_lock_bench
  done
  measure memory engine_memory_bench "${memory[@]}"
  python3 "$here/engine/engine_report.py" ${json:+--json "$json"} "$results"/*.json
}

run_service() {
  local arguments=()
  ((quick)) && arguments+=(--rounds 10)
  [[ -n $json ]] && arguments+=(--json "$results/service.jsonl")
  "$build/bench/service_bench" "${arguments[@]}"
  [[ -z $json ]] || cat "$results/service.jsonl" >>"$json"
}

uname -srm
sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | sort | uniq -c | sed 's/^ */processors: /'
if ((engine)); then run_engine; fi
if ((service)); then
  if [[ -x $build/bench/service_bench ]]; then
    run_service
  else
    printf 'the service was not built: its benchmark is left out\n' >&2
  fi
fi
