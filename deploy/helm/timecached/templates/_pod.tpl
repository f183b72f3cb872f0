{{/* The template of the pods, for whatever makes them. */}}
{{- define "timecached.pod" -}}
metadata:
  # Without versions: an upgrade of the chart alone restarts nothing.
  labels:
    {{- $own := include "timecached.selectorLabels" . | fromYaml }}
    {{- merge (dict) $own .Values.podLabels .Values.commonLabels | toYaml | nindent 4 }}
  {{- $checksum := dict }}
  {{- if and .Values.restartOnConfigChange (not .Values.existingConfigMap) }}
  {{- $checksum = dict "checksum/config" (include "timecached.config" . | sha256sum) }}
  {{- end }}
  {{- with merge (dict) $checksum .Values.podAnnotations .Values.commonAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "timecached.serviceAccountName" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- $cluster := .Values.cluster.enabled }}
  {{- $peer := .Values.cluster.peer }}
  # drain_delay, grace_period, and time for the rest: the journal writes what waits.
  terminationGracePeriodSeconds: {{ add .Values.shutdown.drainDelaySeconds .Values.shutdown.gracePeriodSeconds (ternary 40 10 (or .Values.journal.enabled $cluster)) }}
  securityContext:
    {{- include "timecached.withoutNulls" .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- else }}
  {{- if $cluster }}
  affinity:
    {{- include "timecached.antiAffinity" . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- $create := and $cluster .Values.cluster.createTopics.enabled }}
  {{- if or $create .Values.initContainers }}
  initContainers:
    {{- with .Values.initContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if $create }}
    - name: topics
      image: {{ include "timecached.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - cluster
        - init
        - --config=/etc/timecached/config/timecached.yaml
        - --partitions={{ .Values.cluster.createTopics.partitions }}
        - --replication-factor={{ .Values.cluster.createTopics.replicationFactor }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- include "timecached.withoutNulls" .Values.containerSecurityContext | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/timecached/config
          readOnly: true
        {{- if .Values.cluster.kafka.secretProperties }}
        - name: kafka
          mountPath: /etc/timecached/kafka
          readOnly: true
        {{- end }}
    {{- end }}
  {{- end }}
  containers:
    - name: timecached
      image: {{ include "timecached.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - --config
        - /etc/timecached/config/timecached.yaml
        {{- if $cluster }}
        - --node=$(POD_NAME)
        - --advertise=$(POD_NAME).{{ include "timecached.headless" . }}.{{ .Release.Namespace }}.svc:7171
        {{- end }}
        {{- with .Values.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- if or $cluster .Values.extraEnv }}
      env:
        {{- if $cluster }}
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: grpc
          containerPort: 7171
        - name: http-metrics
          containerPort: 7172
        - name: health
          containerPort: 7173
      startupProbe:
        {{- include "timecached.probe" (list $cluster "/healthz") | nindent 8 }}
        {{- include "timecached.startupProbe" . | nindent 8 }}
      readinessProbe:
        {{- include "timecached.probe" (list $cluster "/readyz") | nindent 8 }}
        {{- toYaml .Values.probes.readiness | nindent 8 }}
      livenessProbe:
        {{- include "timecached.probe" (list $cluster "/healthz") | nindent 8 }}
        {{- toYaml .Values.probes.liveness | nindent 8 }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- include "timecached.withoutNulls" .Values.containerSecurityContext | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/timecached/config
          readOnly: true
        {{- if .Values.tls.enabled }}
        - name: tls
          mountPath: /etc/timecached/tls
          readOnly: true
        {{- end }}
        {{- if .Values.tls.clientCaSecretName }}
        - name: client-ca
          mountPath: /etc/timecached/client-ca
          readOnly: true
        {{- end }}
        {{- if .Values.access.secretName }}
        - name: access
          mountPath: /etc/timecached/access
          readOnly: true
        {{- end }}
        {{- if and $cluster .Values.cluster.kafka.secretProperties }}
        - name: kafka
          mountPath: /etc/timecached/kafka
          readOnly: true
        {{- end }}
        {{- if $peer.tokenSecretName }}
        - name: peer
          mountPath: /etc/timecached/peer
          readOnly: true
        {{- end }}
        {{- if $peer.caSecretName }}
        - name: peer-ca
          mountPath: /etc/timecached/peer-ca
          readOnly: true
        {{- end }}
        {{- if .Values.journal.enabled }}
        - name: journal
          mountPath: {{ include "timecached.journalVolume" . }}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "timecached.configMapName" . }}
    {{- if .Values.tls.enabled }}
    - name: tls
      secret:
        secretName: {{ include "timecached.tlsSecretName" . }}
        # For the group, fsGroup.
        defaultMode: 0440
    {{- end }}
    {{- with .Values.tls.clientCaSecretName }}
    # The roots alone: the Secret may hold their key, too.
    - name: client-ca
      secret:
        secretName: {{ . }}
        defaultMode: 0440
        items:
          - key: ca.crt
            path: ca.crt
    {{- end }}
    {{- if and $cluster .Values.cluster.kafka.secretProperties }}
    - name: kafka
      projected:
        defaultMode: 0440
        sources:
          {{- range $property, $secret := .Values.cluster.kafka.secretProperties }}
          - secret:
              name: {{ $secret.name }}
              items:
                - key: {{ $secret.key }}
                  path: {{ $property }}
          {{- end }}
    {{- end }}
    {{- with .Values.access.secretName }}
    - name: access
      secret:
        secretName: {{ . }}
        defaultMode: 0440
        items:
          - key: access.yaml
            path: access.yaml
    {{- end }}
    {{- with $peer.tokenSecretName }}
    - name: peer
      secret:
        secretName: {{ . }}
        defaultMode: 0440
        items:
          - key: token
            path: token
    {{- end }}
    {{- with $peer.caSecretName }}
    - name: peer-ca
      secret:
        secretName: {{ . }}
        defaultMode: 0440
        items:
          - key: ca.crt
            path: ca.crt
    {{- end }}
    {{- with .Values.journal.existingClaim }}
    - name: journal
      persistentVolumeClaim:
        claimName: {{ . }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
