#!/usr/bin/env bash
# tools.sh DIRECTORY: makes what deploy/ is checked with in DIRECTORY/bin and
# DIRECTORY/schemas: helm, kubeconform, and the schemas of Kubernetes' objects, all of
# them from Go modules, whose checksums Go verifies. Prints nothing when all is there.
# It needs a Go of any age: one that is too old fetches its successor, a module as well.
set -euo pipefail

readonly go_version=1.23.4
readonly programs=(
  helm.sh/helm/v3/cmd/helm@v3.16.4
  github.com/yannh/kubeconform/cmd/kubeconform@v0.6.7
)
# They run for seconds and take minutes to compile: not optimised, not for a debugger.
readonly quickly=('-gcflags=all=-N -l -dwarf=false' '-ldflags=-s -w')
# The versions are schemas.py's, too.
readonly schema_modules=(
  k8s.io/kubernetes@v1.31.4
  github.com/prometheus-operator/prometheus-operator@v0.79.2
  github.com/cert-manager/cert-manager@v1.15.3
)

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
readonly here
directory=$(readlink -m "${1:?usage: tools.sh DIRECTORY}")
readonly directory

say() { printf 'tools: %s\n' "$*" >&2; }

# Whether a Go is new enough: sort knows how versions compare.
is_new_enough() {
  local version
  version=$("$1" env GOVERSION 2>/dev/null) || return
  printf 'go%s\n%s\n' "$go_version" "$version" | sort --version-sort --check=quiet
}

# The go command that builds: sets $go.
find_go() {
  go=go
  is_new_enough go && return
  # One that is fetched knows its own root.
  go=$directory/go/bin/go
  (unset GOROOT && is_new_enough "$go") && unset GOROOT && return
  local module source
  module=golang.org/toolchain@v0.0.1-go$go_version.linux-$(go env GOARCH)
  say "fetching Go $go_version"
  source=$(download "$module")
  rm -rf "$directory/go"
  mkdir -p "$directory/go"
  cp -R --no-preserve=mode "$source/." "$directory/go"
  # A module's files carry no permissions.
  chmod +x "$directory"/go/bin/* "$directory"/go/pkg/tool/*/*
  unset GOROOT
}

# download MODULE: prints the directory that it is in then. Not inside of a module of
# anybody's, and with a go.mod for a go that wants one.
download() {
  (cd "$modules" && GO111MODULE=on GOTOOLCHAIN=local GOFLAGS=-mod=mod \
    "${go_for_download:-go}" mod download -json "$1") |
    sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p'
}

main() {
  local stamp
  stamp=$(printf '%s\n' "$go_version" "${programs[@]}" "${schema_modules[@]}" |
    cat - "$here/schemas.py" | sha256sum)
  [[ $(cat "$directory/stamp" 2>/dev/null) != "$stamp" ]] || return 0
  mkdir -p "$directory/bin"
  modules=$(mktemp -d)
  trap 'rm -rf "$modules"' EXIT
  printf 'module tools\n' >"$modules/go.mod"
  find_go
  export GOTOOLCHAIN=local GOFLAGS=-mod=mod GOBIN=$directory/bin
  go_for_download=$go

  local program module
  for program in "${programs[@]}"; do
    say "building $program"
    (cd "$modules" && "$go" install "${quickly[@]}" "$program")
  done
  for module in "${schema_modules[@]}"; do
    say "fetching $module"
    download "$module" >/dev/null
  done
  rm -rf "$directory/schemas"
  /usr/bin/python3 "$here/schemas.py" "$directory/schemas" "$("$go" env GOMODCACHE)"
  printf '%s\n' "$stamp" >"$directory/stamp"
}

main
