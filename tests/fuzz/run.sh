#!/usr/bin/env bash
# Runs fuzz targets from the build directory: run.sh BUILD [OPTIONS] [TARGET...].
# ./dev fuzz calls it; what users need to know is in its help.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
readonly here
readonly work=$1/fuzz
readonly programs=$1/tests/fuzz
shift

# Targets at a time: each uses at most one core, and little memory.
readonly max_jobs=${JOBS:-$(nproc)}
# Of one input; a target that needs longer has a finding.
readonly input_timeout_seconds=25
readonly max_memory_mib=3072
readonly max_input_bytes=4096
# What the tree keeps of a target. More is found again in seconds.
readonly max_corpus_files=40

seconds=60
seed=0
merge=false
targets=()

say() { printf 'fuzz: %s\n' "$*" >&2; }

usage() {
  cat <<HELP
usage: ./dev fuzz [--seconds N] [--seed N] [--merge] [TARGET...]

Without arguments all targets run for a minute each, one on every core (JOBS=N: N at a
time). .ci/run gives them less.

  --seconds N  how long each target runs (60)
  --seed N     where chance begins: the same program does the same again, as far as the
               time reaches (0: elsewhere each time)
  --merge      do not look for more: put what earlier runs found worth keeping into
               tests/fuzz/corpus, the $max_corpus_files inputs that reach most code;
               findings, which have names of their own, stay
  TARGET       only these (all): $(all_targets | tr '\n' ' ')

What is new is kept in build/asan/fuzz/TARGET, what breaks in build/asan/fuzz/findings.
HELP
}

all_targets() { (cd "$here" && printf '%s\n' *_fuzz.cc) | sed 's/_fuzz\.cc$//'; }

parse() {
  while (($# > 0)); do
    case $1 in
      --seconds)
        [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { say "--seconds: expected a number"; exit 2; }
        seconds=$2
        shift
        ;;
      --seed)
        [[ ${2:-} =~ ^[0-9]{1,9}$ ]] || { say "--seed: expected a number below 10^9"; exit 2; }
        seed=$2
        shift
        ;;
      --merge) merge=true ;;
      -h | --help)
        usage
        exit 0
        ;;
      *)
        [[ -f $here/$1_fuzz.cc ]] || {
          say "$1: no such target; there are: $(all_targets | tr '\n' ' ')"
          exit 2
        }
        targets+=("$1")
        ;;
    esac
    shift
  done
  ((${#targets[@]} > 0)) || mapfile -t targets < <(all_targets)
}

# One line of what the run did: how many inputs, how many a second, how much code it
# reached at its end.
summary() {
  awk '/^#[0-9]+/ { for (i = 1; i < NF; ++i) if ($i == "cov:") cov = $(i + 1) }
    /^stat::number_of_executed_units:/ { units = $2 }
    /^stat::average_exec_per_sec:/ { rate = $2 }
    /^stat::new_units_added:/ { added = $2 }
    END { printf "%d inputs, %d/s, %d new, coverage %d", units, rate, added, cov }' "$1"
}

# run TARGET: 1 if it found something.
run() {
  local target=$1 log=$work/$1.log arguments=()
  mkdir -p "$work/$target" "$work/findings"
  [[ ! -f $here/$target.dict ]] || arguments+=(-dict="$here/$target.dict")
  if "$programs/${target}_fuzz" -max_total_time="$seconds" -seed="$seed" -print_final_stats=1 \
    -timeout="$input_timeout_seconds" -rss_limit_mb="$max_memory_mib" \
    -max_len="$max_input_bytes" -artifact_prefix="$work/findings/$target-" \
    "${arguments[@]}" "$work/$target" "$here/corpus/$target" >"$log" 2>&1 </dev/null; then
    say "$target: $(summary "$log")"
    return
  fi
  tail -n 40 "$log" >&2
  local input
  input=$(sed -n 's/^.*Test unit written to //p' "$log" | tail -n 1)
  say "$target: a finding; it comes again with:"
  say "  $programs/${target}_fuzz ${input:-(see $log)}"
  return 1
}

# merge TARGET
merge() {
  local target=$1 control=$work/$1.merge merged input
  merged=$(mktemp -d "$work/merged.XXXXXX")
  mkdir -p "$work/$target" "$here/corpus/$target" "$work/$target.unread"
  rm -f "$control"
  "$programs/${target}_fuzz" -set_cover_merge=1 -merge_control_file="$control" \
    -use_counters=0 -max_len="$max_input_bytes" "$work/$target.unread" \
    "$here/corpus/$target" "$work/$target" >"$work/$target.merge.log" 2>&1
  rm -rf "$work/$target.unread"
  while IFS= read -r input; do
    cp "$input" "$merged/"
  done < <(python3 -B "$here/choose.py" "$control" "$max_corpus_files")
  rm -rf "$here/corpus/$target"
  mv "$merged" "$here/corpus/$target"
  chmod 755 "$here/corpus/$target"
  say "$target: $(find "$here/corpus/$target" -type f | wc -l) inputs"
}

main() {
  parse "$@"
  mkdir -p "$work"
  local what=run target failed=0
  $merge && what=merge
  for target in "${targets[@]}"; do
    while (($(jobs -rp | wc -l) >= max_jobs)); do
      wait -n || failed=$((failed + 1))
    done
    "$what" "$target" &
  done
  while (($(jobs -p | wc -l) > 0)); do
    wait -n || failed=$((failed + 1))
  done
  ((failed == 0)) || {
    say "$failed of ${#targets[@]} targets have findings"
    exit 1
  }
}

main "$@"
