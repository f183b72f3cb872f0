#!/usr/bin/env bash
# apiserver.sh DIRECTORY: has a real kube-apiserver take what deploy/ gives it. Builds
# kube-apiserver and kubectl from their Go modules, which takes two cores some minutes
# at the first time; DIRECTORY keeps them. Starts etcd and the API server on loopback,
# with certificates of its own that it throws away, and applies deploy/kubernetes.yaml
# and the chart, with every values file, to namespaces that enforce pod security
# "restricted". Nothing schedules or runs the pods: this is about what is accepted.
# Needs Go 1.22, etcd, openssl and helm as $HELM (./dev deploy makes
# build/tools/bin/helm).
set -euo pipefail

readonly version=1.31.4
readonly answer_seconds=120

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
readonly here
keep=$(readlink -m "${1:?usage: apiserver.sh DIRECTORY}")
readonly keep
readonly bin=$keep/bin-$version
run=$(mktemp -d)
readonly run
children=()

say() { printf 'apiserver: %s\n' "$*"; }
die() {
  say "$@" >&2
  tail -n 5 "$run"/*.log >&2 || true
  exit 1
}

clean_up() {
  local i
  # The API server before its store.
  for ((i = ${#children[@]} - 1; i >= 0; --i)); do
    kill "${children[i]}" 2>/dev/null || true
    wait "${children[i]}" 2>/dev/null || true
  done
  rm -rf "$run"
}
trap clean_up EXIT

# Kubernetes is made of many modules that its own go.mod replaces with directories,
# which a module does not hold: they are published under the same number.
build_programs() {
  [[ ! -x $bin/kube-apiserver || ! -x $bin/kubectl ]] || return 0
  local module package=k8s.io/component-base/version
  local flags="-s -w -X $package.gitVersion=v$version"
  flags+=" -X $package.gitMajor=1 -X $package.gitMinor=31"
  mkdir -p "$bin" "$run/build"
  printf 'module build\n' >"$run/build/go.mod"
  module=$(cd "$run/build" && GOFLAGS=-mod=mod go mod download -json "k8s.io/kubernetes@v$version" |
    sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
  sed -e 's#^module .*#module build#' \
    -e "s#=> ./staging/src/\(k8s.io/[a-z-]*\)#=> \1 v0${version#1}#" \
    -e "s# v0\.0\.0\$# v0${version#1}#" "$module/go.mod" >"$run/build/go.mod"
  printf 'require k8s.io/kubernetes v%s\n' "$version" >>"$run/build/go.mod"
  say "building kube-apiserver and kubectl $version"
  (cd "$run/build" && GOFLAGS="-mod=mod -buildvcs=false" go build -o "$bin/" \
    -ldflags "$flags" \
    k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl)
}

# Free now; nobody else is likely to take them in the next second.
free_ports() {
  /usr/bin/python3 - "$1" <<'PYTHON'
import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in sockets))
PYTHON
}

# await WHAT COMMAND...: until it succeeds.
await() {
  local what=$1 deadline=$((SECONDS + answer_seconds))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || die "$what does not answer"
    sleep 0.2
  done
}

start_cluster() {
  local etcd_port peer_port api_port token
  read -r etcd_port peer_port api_port < <(free_ports 3)
  etcd --data-dir "$run/etcd" --unsafe-no-fsync \
    --listen-client-urls "http://127.0.0.1:$etcd_port" \
    --advertise-client-urls "http://127.0.0.1:$etcd_port" \
    --listen-peer-urls "http://127.0.0.1:$peer_port" \
    --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
    --initial-cluster "default=http://127.0.0.1:$peer_port" >"$run/etcd.log" 2>&1 &
  children+=($!)

  openssl genrsa -out "$run/accounts.key" 2048 2>/dev/null
  token=$(openssl rand -hex 16)
  printf '%s,admin,admin,system:masters\n' "$token" >"$run/tokens.csv"
  # It signs a certificate for itself into --cert-dir.
  "$bin/kube-apiserver" --etcd-servers "http://127.0.0.1:$etcd_port" \
    --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --secure-port "$api_port" \
    --cert-dir "$run/certificates" --token-auth-file "$run/tokens.csv" \
    --authorization-mode RBAC --service-cluster-ip-range 10.0.0.0/24 \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$run/accounts.key" \
    --service-account-signing-key-file "$run/accounts.key" \
    --endpoint-reconciler-type none >"$run/apiserver.log" 2>&1 &
  children+=($!)

  cat >"$run/kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
clusters:
  - name: test
    cluster:
      server: https://127.0.0.1:$api_port
      certificate-authority: $run/certificates/apiserver.crt
users:
  - name: admin
    user: {token: "$token"}
contexts:
  - name: test
    context: {cluster: test, user: admin}
current-context: test
CONFIG
  await "the API server" kubectl get --raw /readyz
  say "kube-apiserver $(kubectl version -o json | sed -n 's/.*"gitVersion": "\(.*\)".*/\1/p' |
    tail -n 1) with $(etcd --version | head -n 1)"
}

kubectl() { "$bin/kubectl" --kubeconfig "$run/kubeconfig" --cache-dir "$run/cache" "$@"; }

# count FILE: how many of its lines say that an object was taken.
count() { grep -c -E ' (created|configured|unchanged|serverside-applied)' "$1"; }

# Warnings are as good as errors: of pod security, of fields that are not there.
apply() {
  local what=$1
  shift
  kubectl apply --validate=strict --warnings-as-errors "$@" >"$run/applied" 2>&1 ||
    die "$what was refused: $(cat "$run/applied")"
  say "$what: $(count "$run/applied") objects accepted"
}

apply_manifest() {
  local manifest=$here/../kubernetes.yaml
  # A namespace must be there before a dry run of what is in it.
  kubectl create namespace dry-run >/dev/null
  sed 's/namespace: timecached$/namespace: dry-run/' "$manifest" >"$run/dry-run.yaml"
  apply "kubernetes.yaml, server-side dry run" --server-side --dry-run=server -f "$run/dry-run.yaml"
  apply "kubernetes.yaml" -f "$manifest"
  local before
  before=$(versions)
  apply "kubernetes.yaml, once more" -f "$manifest"
  [[ $(versions) == "$before" ]] || die "a second time changes something: $(cat "$run/applied")"
}

# What a change would change.
versions() {
  kubectl -n timecached get --no-headers \
    -o custom-columns=KIND:.kind,VERSION:.metadata.resourceVersion \
    "$(kubectl api-resources --namespaced --verbs list -o name | grep -v '^events' | paste -sd ,)"
}

apply_chart() {
  local values name
  # The operator's and cert-manager's kinds are those of their own modules.
  kubectl apply --server-side -f "$run/crds" >/dev/null
  await "the operator's kinds" kubectl get servicemonitors,prometheusrules,certificates -A
  kubectl create namespace monitoring >/dev/null
  for values in "$here"/values/*.yaml; do
    name=$(basename "$values" .yaml)
    kubectl create namespace "chart-$name" >/dev/null
    # Which a controller would make that is not here.
    kubectl -n "chart-$name" create serviceaccount default >/dev/null
    kubectl label namespace "chart-$name" pod-security.kubernetes.io/enforce=restricted \
      pod-security.kubernetes.io/warn=restricted >/dev/null
    "$HELM" template timecached "$here/../helm/timecached" --namespace "chart-$name" \
      --kube-version "$version" --values "$values" >"$run/chart.yaml" \
      2>"$run/helm.log" || die "helm refused $values"
    apply "the chart with $name.yaml" -f "$run/chart.yaml"
  done
}

helm() { KUBECONFIG=$run/kubeconfig "$HELM" --namespace helm "$@" 2>>"$run/helm.log"; }

# As its users do: installed, upgraded, its notes read, uninstalled.
install_chart() {
  local chart=$here/../helm/timecached generation
  helm install timecached "$chart" --create-namespace >"$run/installed" ||
    die "helm install failed: $(cat "$run/helm.log")"
  grep -q 'timecachectl health' "$run/installed" || die "no notes: $(cat "$run/installed")"
  helm upgrade timecached "$chart" >/dev/null
  generation=$(generation)
  ((generation == 1)) || die "an upgrade to the same changes the Deployment"
  helm upgrade timecached "$chart" --set config.log.level=debug >/dev/null
  (($(generation) == 2)) || die "a changed configuration does not restart the pod"
  helm uninstall timecached >/dev/null
  [[ -z $(kubectl -n helm get all,configmap,networkpolicy,pdb -o name) ]] ||
    die "helm uninstall leaves: $(kubectl -n helm get all -o name)"
  say "helm install, upgrade, uninstall: accepted, with notes"
}

generation() { kubectl -n helm get deployment timecached -o 'jsonpath={.metadata.generation}'; }

# Pod security looks at pods, which nothing here makes of a Deployment: so they are
# made by hand, and one that is not restricted is seen to be refused.
apply_pods() {
  kubectl -n timecached get deployment timecached -o json >"$run/deployment.json"
  /usr/bin/python3 - "$run" <<'PYTHON'
import json, sys
run = sys.argv[1]
template = json.load(open(run + "/deployment.json"))["spec"]["template"]
pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
       "metadata": {"name": "timecached-pod", "namespace": "timecached",
                    "labels": template["metadata"]["labels"]}}
json.dump(pod, open(run + "/pod.json", "w"))
pod["metadata"]["name"] = "loose"
del pod["spec"]["containers"][0]["securityContext"]
json.dump(pod, open(run + "/loose.json", "w"))
PYTHON
  apply "a pod of the Deployment, where restricted is enforced" -f "$run/pod.json"
  if kubectl apply -f "$run/loose.json" >"$run/applied" 2>&1; then
    die "a pod that is not restricted was taken: nothing was enforced"
  fi
  grep -q 'violates PodSecurity "restricted' "$run/applied" || die "$(cat "$run/applied")"
  say "the same pod without its securityContext: refused, violates restricted"
}

# download MODULE: prints the directory that it is in then.
download() {
  (cd "$run/module" && GOFLAGS=-mod=mod go mod download -json "$1") |
    sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p'
}

fetch_custom_kinds() {
  mkdir -p "$run/crds" "$run/module"
  printf 'module fetch\n' >"$run/module/go.mod"
  cp "$(download github.com/prometheus-operator/prometheus-operator@v0.79.2)"/example/prometheus-operator-crd/*_{servicemonitors,prometheusrules}.yaml \
    "$run/crds"
  # Of cert-manager's chart: its labels would be templates.
  sed '/{{/d' "$(download github.com/cert-manager/cert-manager@v1.15.3)/deploy/crds/crd-certificates.yaml" \
    >"$run/crds/certificates.yaml"
}

build_programs
fetch_custom_kinds
start_cluster
apply_manifest
apply_pods
apply_chart
install_chart
say "all is well"
