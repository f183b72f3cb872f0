{{- define "timecached.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "timecached.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "timecached.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "timecached.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "timecached.headless" -}}
{{- include "timecached.fullname" . }}-headless
{{- end -}}

{{- define "timecached.selectorLabels" -}}
app.kubernetes.io/name: {{ include "timecached.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "timecached.labels" -}}
{{ include "timecached.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* metadata's labels and annotations: include (list $ LABELS ANNOTATIONS), where the
later ones win over the common ones, and none over the chart's own labels. */}}
{{- define "timecached.metadata" -}}
{{- $root := index . 0 -}}
{{- $own := include "timecached.labels" $root | fromYaml -}}
labels:
  {{- merge (dict) $own (index . 1) $root.Values.commonLabels | toYaml | nindent 2 }}
{{- with merge (dict) (index . 2) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "timecached.image" -}}
{{- $registry := default (dig "imageRegistry" "" (default (dict) .Values.global)) .Values.image.registry -}}
{{- with .Values.image -}}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The ConfigMap and the Secret that the pod mounts. */}}
{{- define "timecached.configMapName" -}}
{{- default (include "timecached.fullname" .) .Values.existingConfigMap -}}
{{- end -}}

{{- define "timecached.tlsSecretName" -}}
{{- $made := ternary (printf "%s-tls" (include "timecached.fullname" .)) "" .Values.tls.certManager.enabled -}}
{{- default $made .Values.tls.secretName -}}
{{- end -}}

{{- define "timecached.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "timecached.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Whether the server is a StatefulSet, for pods with volumes or names of their own and
for an update that waits until a pod is deleted; else it is a Deployment. */}}
{{- define "timecached.stateful" -}}
{{- if or .Values.journal.enabled .Values.cluster.enabled (gt (int .Values.replicaCount) 1) (eq .Values.updateStrategy.type "OnDelete") -}}
true
{{- end -}}
{{- end -}}

{{/* A pod, for kubectl exec: of a Deployment, whose pods have random names, any. */}}
{{- define "timecached.podReference" -}}
{{- $name := include "timecached.fullname" . -}}
{{- if include "timecached.stateful" . }}{{ $name }}-0{{ else }}deployment/{{ $name }}{{ end -}}
{{- end -}}

{{/* Whether the pods are nodes that take each other's calls: all of them are ready. */}}
{{- define "timecached.forwards" -}}
{{- if and .Values.cluster.enabled .Values.cluster.forwardCalls -}}
true
{{- end -}}
{{- end -}}

{{/* Where the journal's volume is mounted. The journal is a directory below: the volume's
root may hold others, such as lost+found. */}}
{{- define "timecached.journalVolume" -}}
/var/lib/timecached
{{- end -}}

{{/* The startup probe's times: with a journal it waits for the recovery, too. */}}
{{- define "timecached.startupProbe" -}}
{{- $probe := deepCopy .Values.probes.startup -}}
{{- if .Values.journal.enabled -}}
{{- $tries := divf .Values.journal.recoverySeconds $probe.periodSeconds | ceil | int -}}
{{- $_ := set $probe "failureThreshold" (add $probe.failureThreshold $tries) -}}
{{- end -}}
{{- toYaml $probe -}}
{{- end -}}

{{/* What a probe asks: of a cluster's node the HTTP port, where a standby is alive and not
ready; its health says no more than that it does not serve. */}}
{{- define "timecached.probe" -}}
{{- $cluster := index . 0 -}}
{{- if $cluster -}}
httpGet:
  port: http-metrics
  path: {{ index . 1 }}
{{- else -}}
grpc:
  port: 7173
{{- end -}}
{{- end -}}

{{/* Each node of a cluster on a machine of its own. */}}
{{- define "timecached.antiAffinity" -}}
podAntiAffinity:
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (include "timecached.selectorLabels" . | fromYaml)) -}}
{{- if eq .Values.cluster.antiAffinity "required" }}
  requiredDuringSchedulingIgnoredDuringExecution:
    {{- list $term | toYaml | nindent 4 }}
{{- else }}
  preferredDuringSchedulingIgnoredDuringExecution:
    {{- list (dict "weight" 100 "podAffinityTerm" $term) | toYaml | nindent 4 }}
{{- end -}}
{{- end -}}

{{- define "timecached.clusterName" -}}
{{- default (include "timecached.fullname" .) .Values.cluster.name -}}
{{- end -}}

{{/* A dictionary as YAML, without what is null: unset with --set field=null. */}}
{{- define "timecached.withoutNulls" -}}
{{- $set := dict -}}
{{- range $name, $value := . -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $set $name $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $set -}}
{{- end -}}

{{/* timecached.yaml. */}}
{{- define "timecached.config" -}}
listeners:
  - address: "[::]:7171"
    {{- if .Values.tls.enabled }}
    tls:
      certificate_file: /etc/timecached/tls/tls.crt
      key_file: /etc/timecached/tls/tls.key
      {{- if .Values.tls.clientCaSecretName }}
      client_ca_file: /etc/timecached/client-ca/ca.crt
      {{- end }}
      {{- with .Values.tls.clientCertificate }}
      client_certificate: {{ . }}
      {{- end }}
    {{- else }}
    allow_plaintext: true
    {{- end }}
# For probes: it serves nothing else, in plain text.
health_address: "[::]:7173"
# /metrics, /healthz, /readyz.
http:
  address: "[::]:7172"
{{- if .Values.access.secretName }}
access:
  file: /etc/timecached/access/access.yaml
{{- end }}
{{- range $field := list "limits" "namespaces" "log" "debug" }}
{{- with index $.Values.config $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .Values.config.default_partitions }}
default_partitions: {{ . }}
{{- end }}
{{- if .Values.journal.enabled }}
journal:
  directory: {{ include "timecached.journalVolume" . }}/journal
  {{- with .Values.journal.maxClockLag }}
  max_clock_lag: {{ . }}
  {{- end }}
  {{- with .Values.journal.maxClockLead }}
  max_clock_lead: {{ . }}
  {{- end }}
  {{- with .Values.journal.reserveBytes }}
  reserve_bytes: {{ . }}
  {{- end }}
{{- end }}
{{- if .Values.cluster.enabled }}
# The node's name and address are the pod's: --node, --advertise.
cluster:
  name: {{ include "timecached.clusterName" . }}
  kafka:
    brokers:
      {{- toYaml .Values.cluster.kafka.brokers | nindent 6 }}
    {{- with .Values.cluster.kafka.properties }}
    properties:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.cluster.kafka.secretProperties }}
    property_files:
      {{- range $property, $secret := . }}
      {{ $property }}: /etc/timecached/kafka/{{ $property }}
      {{- end }}
    {{- end }}
  {{- with .Values.cluster.lease }}
  lease: {{ . }}
  {{- end }}
  {{- with .Values.cluster.failureTimeout }}
  failure_timeout: {{ . }}
  {{- end }}
  {{- with .Values.cluster.maxClockSkew }}
  max_clock_skew: {{ . }}
  {{- end }}
  {{- with .Values.cluster.reads }}
  reads: {{ . }}
  {{- end }}
  {{- if .Values.cluster.allowUnsafe }}
  allow_unsafe: true
  {{- end }}
  {{- if .Values.cluster.forwardCalls }}
  forward_calls: true
  {{- with .Values.cluster.peer.principal }}
  peer_principal: {{ . | quote }}
  {{- end }}
  {{- if .Values.cluster.peer.tokenSecretName }}
  peer_token_file: /etc/timecached/peer/token
  {{- end }}
  {{- if .Values.cluster.peer.caSecretName }}
  peer_ca_file: /etc/timecached/peer-ca/ca.crt
  {{- end }}
  {{- end }}
{{- end }}
drain_delay: {{ .Values.shutdown.drainDelaySeconds }}s
grace_period: {{ .Values.shutdown.gracePeriodSeconds }}s
{{- end -}}

{{/* What no schema can say: choices that do not go together. */}}
{{- define "timecached.check" -}}
{{- with .Values -}}
{{- if and .tls.enabled (not .tls.secretName) (not .tls.certManager.enabled) -}}
{{- fail "tls.enabled needs tls.secretName, a Secret of the type kubernetes.io/tls, or tls.certManager.enabled=true" -}}
{{- end -}}
{{- if and .tls.certManager.enabled (not .tls.enabled) -}}
{{- fail "tls.certManager.enabled needs tls.enabled=true" -}}
{{- end -}}
{{- if and .tls.certManager.enabled (not .tls.certManager.issuerRef.name) -}}
{{- fail "tls.certManager.enabled needs tls.certManager.issuerRef.name, an Issuer or ClusterIssuer" -}}
{{- end -}}
{{- if not .tls.enabled -}}
{{- if not .tls.allowPlaintext -}}
{{- fail "without tls.enabled the server speaks plain text to the network: set tls.enabled and tls.secretName, or tls.allowPlaintext=true if that is meant" -}}
{{- end -}}
{{- if or .tls.secretName .tls.clientCaSecretName .tls.clientCertificate -}}
{{- fail "tls.secretName, tls.clientCaSecretName and tls.clientCertificate need tls.enabled=true" -}}
{{- end -}}
{{- if and .service.enabled (ne .service.type "ClusterIP") -}}
{{- fail (printf "service.type=%s would serve plain text outside the cluster: set tls.enabled and tls.secretName" .service.type) -}}
{{- end -}}
{{- end -}}
{{- if and (has .tls.clientCertificate (list "optional" "required")) (not .tls.clientCaSecretName) -}}
{{- fail (printf "tls.clientCertificate=%s needs tls.clientCaSecretName, a Secret with ca.crt" .tls.clientCertificate) -}}
{{- end -}}
{{- if .cluster.enabled -}}
{{- if .journal.enabled -}}
{{- fail "cluster.enabled and journal.enabled: a node of a cluster keeps its journal in Kafka; disable one of them" -}}
{{- end -}}
{{- if and (lt (int .replicaCount) 2) (not .cluster.allowUnsafe) -}}
{{- fail "cluster.enabled needs replicaCount of 2 or more: an owner and a standby" -}}
{{- end -}}
{{- if not (or .cluster.kafka.brokers $.Values.existingConfigMap) -}}
{{- fail "cluster.enabled needs cluster.kafka.brokers, host:port of one or more" -}}
{{- end -}}
{{- end -}}
{{- if .cluster.forwardCalls -}}
{{- if not .cluster.enabled -}}
{{- fail "cluster.forwardCalls needs cluster.enabled=true" -}}
{{- end -}}
{{- if .access.secretName -}}
{{- if not .cluster.peer.principal -}}
{{- fail "cluster.forwardCalls with access.secretName needs cluster.peer.principal, the principal as which nodes call each other" -}}
{{- end -}}
{{- if not (or .cluster.peer.tokenSecretName .tls.clientCaSecretName) -}}
{{- fail "cluster.peer.principal needs cluster.peer.tokenSecretName, or tls.clientCaSecretName with which nodes check each other's certificates" -}}
{{- end -}}
{{- end -}}
{{- if and .cluster.peer.caSecretName (not .tls.enabled) -}}
{{- fail "cluster.peer.caSecretName needs tls.enabled=true" -}}
{{- end -}}
{{- else if or .cluster.peer.principal .cluster.peer.tokenSecretName .cluster.peer.caSecretName -}}
{{- fail "cluster.peer needs cluster.forwardCalls=true" -}}
{{- end -}}
{{- if and (gt (int .replicaCount) 1) .service.enabled (not .cluster.enabled) -}}
{{- fail "replicaCount above 1 needs service.enabled=false: each pod holds other entries, so that clients must choose the pod by its name" -}}
{{- end -}}
{{- if and .journal.existingClaim (gt (int .replicaCount) 1) -}}
{{- fail "journal.existingClaim is one volume, for replicaCount=1" -}}
{{- end -}}
{{- if not .journal.enabled -}}
{{- if or .journal.existingClaim .journal.maxClockLag .journal.maxClockLead .journal.reserveBytes -}}
{{- fail "journal.existingClaim, journal.maxClockLag, journal.maxClockLead and journal.reserveBytes need journal.enabled=true" -}}
{{- end -}}
{{- range .config.namespaces -}}
{{- $durability := dig "options" "durability" "memory" . -}}
{{- if and (eq $durability "replicated") (not $.Values.cluster.enabled) -}}
{{- fail (printf "config.namespaces: %s has durability replicated, which needs cluster.enabled=true" .name) -}}
{{- end -}}
{{- if has $durability (list "async" "sync") -}}
{{- fail (printf "config.namespaces: %s has durability %s, which needs journal.enabled=true" .name $durability) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .service -}}
{{- if and (eq .type "ClusterIP") (or .nodePort .externalTrafficPolicy) -}}
{{- fail "service.nodePort and service.externalTrafficPolicy need service.type=NodePort or LoadBalancer" -}}
{{- end -}}
{{- if and (ne .type "LoadBalancer") (or .loadBalancerIP .loadBalancerClass .loadBalancerSourceRanges (kindIs "bool" .allocateLoadBalancerNodePorts)) -}}
{{- fail "service.loadBalancerIP, loadBalancerClass, loadBalancerSourceRanges and allocateLoadBalancerNodePorts need service.type=LoadBalancer" -}}
{{- end -}}
{{- end -}}
{{- if and .console.enabled (not (and .console.hosts .console.tokenSecretName .console.tlsSecretName)) -}}
{{- fail "console.enabled needs console.hosts, console.tokenSecretName and console.tlsSecretName" -}}
{{- end -}}
{{- if not (dig "limits" "memory" "" .resources) -}}
{{- fail "resources.limits.memory is needed: without it the server takes the node's memory for its own" -}}
{{- end -}}
{{- end -}}
{{- end -}}
