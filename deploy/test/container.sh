#!/usr/bin/env bash
# container.sh DIRECTORY: builds deploy/Dockerfile and runs the image as a cluster
# would: another user than root, a read-only root file system, no capabilities, a
# network of its own. Then puts, gets, probes, and sees it drain. Needs root, buildah,
# debootstrap, iproute2 and the Debian mirror; the base image is made by debootstrap
# under the name that the Dockerfile asks for. DIRECTORY keeps the base and the image's
# layers for the next time: some 2 GB.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
readonly here
readonly source=$here/../..
readonly keep=${1:?usage: container.sh DIRECTORY}
readonly base_image=docker.io/library/debian:bookworm-slim
readonly image=localhost/timecached:test
readonly answer_seconds=60 # for a start, a drain, or a line: a loaded machine's

mkdir -p "$keep"
run=$(mktemp -d)
readonly run
readonly name=timecached-test-$$
server= # the runtime's process, which ends with the container's
watcher=
working=
root=

buildah() {
  command buildah --root "$keep/layers" --runroot "$run/buildah" --storage-driver vfs "$@"
}

say() { printf 'container: %s\n' "$*"; }
die() {
  say "$@" >&2
  [[ ! -s $run/log ]] || tail -n 20 "$run/log" >&2
  exit 1
}

# Ends what this script started, and nothing else.
clean_up() {
  local process
  exec 3<&- # lets whoever writes to it go
  [[ -z $server ]] || runc delete --force "$name" 2>/dev/null || true
  for process in $watcher $server; do
    kill -KILL "$process" 2>/dev/null || true
  done
  wait || true
  [[ -z $working ]] || buildah rm "$working" >/dev/null || true
  rm -rf "$run"
}
trap clean_up EXIT

make_base() {
  buildah inspect --type image "$base_image" >/dev/null 2>&1 && return
  say "making $base_image with debootstrap"
  debootstrap --variant=minbase bookworm "$run/base" >"$run/debootstrap.log" ||
    die "debootstrap failed: $(tail -n 3 "$run/debootstrap.log")"
  rm -rf "$run"/base/var/cache/apt/archives/*.deb "$run"/base/var/lib/apt/lists/*
  local container
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$run/base" / >/dev/null
  buildah config --cmd /bin/bash "$container"
  buildah commit --quiet --rm "$container" "$base_image" >/dev/null
  rm -rf "$run/base"
}

build_image() {
  say "building deploy/Dockerfile"
  buildah bud --isolation chroot --layers --format docker --pull-never \
    --file "$source/deploy/Dockerfile" --tag "$image" "$source"
}

describe_image() {
  working=$(buildah from --pull-never "$image")
  root=$(buildah mount "$working")
  say "size: $(du -sm "$root" | cut -f 1) MiB, compressed $(tar -C "$root" -c . | gzip |
    wc -c | awk '{printf "%.0f", $1 / 1048576}') MiB;" \
    "$(find "$root" -type f | wc -l) files, $(find "$root" -name '*.so*' | wc -l) libraries"
  du -k "$root"/usr/local/bin/* | awk '{printf "container:   %6d KiB %s\n", $1, $2}' |
    sed "s#$root##"
  local config
  config=$(buildah inspect --type image "$image")
  local expected
  for expected in '"User": "65532:65532"' '"StopSignal": "SIGTERM"' '"7173/tcp"' \
    '"Healthcheck"' 'org.opencontainers.image.title'; do
    grep -qF "$expected" <<<"$config" || die "the image's configuration has no $expected"
  done
  local state
  state=$(stat -c '%u:%g %a' "$root/var/lib/timecached")
  [[ $state == '65532:65532 700' ]] || die "/var/lib/timecached is of $state"
  [[ ! -e $root/bin/sh && ! -e $root/usr/bin/sh ]] || die "there is a shell in the image"
}

# What deploy/kubernetes.yaml says of the pod, as a container runtime is told it: the
# arguments, the configuration, the user, the limit of memory.
write_bundle() {
  buildah inspect --type image "$image" >"$run/image.json"
  mkdir "$run/bundle" "$run/config"
  (cd "$run/bundle" && runc spec)
  /usr/bin/python3 - "$run" "$root" "$source/deploy/kubernetes.yaml" <<'PYTHON'
import json, sys, yaml
run, root, manifest = sys.argv[1:]
with open(manifest) as file:
    objects = {o["kind"]: o for o in yaml.safe_load_all(file)}
with open(run + "/image.json") as file:
    image = json.load(file)["Docker"]["config"]
pod = objects["Deployment"]["spec"]["template"]["spec"]
(container,) = pod["containers"]
for name, text in objects["ConfigMap"]["data"].items():
    with open(f"{run}/config/{name}", "w") as file:
        file.write(text)
path = run + "/bundle/config.json"
with open(path) as file:
    spec = json.load(file)
user = pod["securityContext"]
spec["process"].update(
    terminal=False, env=image["Env"], args=image["Entrypoint"] + container["args"],
    user={"uid": user["runAsUser"], "gid": user["runAsGroup"]},
    noNewPrivileges=not container["securityContext"]["allowPrivilegeEscalation"],
    capabilities={}, rlimits=[])
spec["root"] = {"path": root,
                "readonly": container["securityContext"]["readOnlyRootFilesystem"]}
(mount,) = container["volumeMounts"]
spec["mounts"].append({
    "destination": mount["mountPath"], "source": run + "/config", "type": "bind",
    "options": ["bind", "ro"]})
memory = container["resources"]["limits"]["memory"]
assert memory.endswith("Gi"), memory
spec["linux"]["resources"]["memory"] = {"limit": int(memory[:-2]) << 30}
with open(path, "w") as file:
    json.dump(spec, file)
PYTHON
  chmod -R a+rX "$run/config"
}

ctl() { timeout "$answer_seconds" runc exec "$name" timecachectl "$@"; }

# await TEXT: reads the server's log on to the line that has it.
await() {
  local line
  while IFS= read -r -t "$answer_seconds" -u 3 line; do
    printf '%s\n' "$line" >>"$run/log"
    [[ $line != *"$1"* ]] || return 0
  done
  die "the server's log does not say $1"
}

start() {
  mkfifo "$run/stderr"
  runc run --bundle "$run/bundle" "$name" 2>"$run/stderr" &
  server=$!
  exec 3<"$run/stderr"
  await server_started
  say "started: $(tail -n 1 "$run/log")"
}

try_out() {
  [[ $(ctl health --address 127.0.0.1:7173) == SERVING ]] || die "the probe does not say SERVING"
  ctl put greeting hello --ttl 1h >/dev/null
  [[ $(ctl get greeting) == hello ]] || die "what was put is not there"
  say "the probe says SERVING; what was put can be got"
  local status
  status=$(runc exec "$name" timecachectl health --address 127.0.0.1:9 --timeout 1s 2>/dev/null) &&
    die "a probe of nothing says $status"
  if runc exec "$name" /bin/sh -c true 2>/dev/null; then die "there is a shell"; fi
  local process
  process=$(runc state "$name" | awk -F '[:, ]+' '/"pid"/ {print $3}')
  grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' "/proc/$process/status" | tr '\n\t' '; '
  printf '\n'
  grep -qP '^Uid:\t65532\t65532' "/proc/$process/status" || die "it does not run as 65532"
  grep -qP '^CapEff:\t0+$' "/proc/$process/status" || die "it has capabilities"
}

drain() {
  runc exec "$name" timecachectl watch >"$run/watched" 2>"$run/watch_errors" &
  watcher=$!
  # Its stream is open when the server counts a watcher.
  local tries
  for ((tries = 0; tries < answer_seconds; ++tries)); do
    ctl ns get default --json | grep -qE '"watchers": *1' && break
    sleep 0.2
  done
  local started=$SECONDS status=0 stopped
  runc kill "$name" TERM
  await drain_started
  # For drain_delay it says that it will not serve, and serves.
  [[ $(ctl health --address 127.0.0.1:7173) == NOT_SERVING ]] ||
    die "while it drains, the probe does not say NOT_SERVING"
  [[ $(ctl get greeting) == hello ]] || die "it does not serve for its drain_delay"
  await server_stopped
  stopped=$(tail -n 1 "$run/log")
  [[ $stopped == *'"calls_cancelled":false'* && $stopped == *'"watchers":1'* ]] ||
    die "the drain cut somebody off: $stopped"
  wait "$server" || status=$?
  server=
  ((status == 0)) || die "after SIGTERM it ended with $status"
  say "SIGTERM: drained and ended with 0 in $((SECONDS - started)) s: $stopped"
}

make_base
build_image
describe_image
write_bundle
start
try_out
drain
say "all is well"
