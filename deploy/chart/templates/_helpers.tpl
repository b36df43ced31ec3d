{{/* The secrets that each process uses, by process. `make chart` writes the file. */}}
{{- define "gateway.uses" -}}
{{ .root.Files.Get "secrets.yaml" }}
{{- end -}}

{{- define "gateway.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end -}}

{{- define "gateway.labels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "gateway.asks" -}}
{{ has .component (list "web" "admin" "worker-relay") }}
{{- end -}}

{{/* The environment of a process: settings, URLs of database and Redis, the signer, and its secrets. */}}
{{- define "gateway.environment" -}}
{{- $component := .component -}}
{{- $values := .root.Values -}}
{{- $uses := index (fromYaml (include "gateway.uses" .)) $component -}}
{{- $owns := has $component (list "eraser" "migrate") -}}
{{- $config := deepCopy $values.config -}}
{{- if eq $component "admin" }}{{- $config = merge (dict "ALLOWED_HOSTS" (join "," $values.admin.hosts)) $config }}{{- end -}}
{{- /* The owner connects past the pooler. */}}
{{- if $owns }}{{- $config = omit $config "DATABASE_POOLING" }}{{- end -}}
{{- /* Prometheus scrapes a pod by its address. */}}
{{- if and (eq $component "web") $values.monitoring.serviceMonitor }}
{{- $config = merge (dict "ALLOWED_HOSTS" (printf "%s,$(POD_IP)" (get $config "ALLOWED_HOSTS"))) $config }}
- { name: POD_IP, valueFrom: { fieldRef: { fieldPath: status.podIP } } }
{{- end }}
{{- range $name, $text := $config }}
- { name: {{ $name }}, value: {{ $text | quote }} }
{{- end }}
- { name: ALIVE_FILE, value: /tmp/alive }
{{- /* Without an admin host, web also serves the admin. */}}
{{- if or (ne $component "web") $values.admin.enabled }}
- { name: GATEWAY_PROCESS, value: {{ $component }} }
{{- end }}
{{- if eq $component "migrate" }}
- { name: DATABASE_APPLICATION_ROLE, value: {{ $values.applicationRole | quote }} }
{{- end }}
- name: DATABASE_URL
  valueFrom: { secretKeyRef: { name: {{ if $owns }}{{ $values.ownerSecretName }}{{ else }}{{ $values.secretName }}{{ end }}, key: DATABASE_URL } }
{{- range list "REDIS_URL" "SECRET_KEY" }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ $values.secretName }}, key: {{ . }} } }
{{- end }}
{{- if and (eq $component "worker-relay") (eq (get $values.config "DATABASE_POOLING") "transaction") }}
- name: DATABASE_DIRECT_URL
  valueFrom: { secretKeyRef: { name: {{ $values.secretName }}, key: DATABASE_DIRECT_URL } }
{{- end }}
{{- if and $values.readsFromStandby (has $component (list "web" "admin")) }}
- name: DATABASE_REPLICA_URL
  valueFrom: { secretKeyRef: { name: {{ $values.secretName }}, key: DATABASE_REPLICA_URL } }
{{- end }}
{{- if eq (include "gateway.asks" .) "true" }}
- { name: SIGNER_URL, value: {{ if eq $values.signer.kind "external" }}{{ $values.signer.url | quote }}{{ else }}{{ printf "https://%s-signer:8443" .root.Release.Name | quote }}{{ end }} }
- { name: SIGNER_TLS_FOLDER, value: /run/signer-tls }
{{- end }}
{{- range $uses }}
{{- if not (has . $values.absentSecrets) }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ $values.secretName }}, key: {{ . }} } }
{{- end }}
{{- end }}
{{- if has $component (list "web" "admin" "worker-default" "migrate") }}
- name: LEDGER_PUBLIC_KEYS
  valueFrom: { secretKeyRef: { name: {{ $values.secretName }}, key: LEDGER_PUBLIC_KEYS, optional: true } }
{{- end }}
{{- with $values.environment }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gateway.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- define "gateway.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{/* The pod of a process of the service: root, component, command (empty for the image's), resources, seconds to end. */}}
{{- define "gateway.pod" -}}
{{- $values := .root.Values -}}
metadata:
  labels:
    {{- include "gateway.labels" . | nindent 4 }}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ .ending }}
  {{- with $values.imagePullSecrets }}
  imagePullSecrets: {{ toJson . }}
  {{- end }}
  {{- if .restartPolicy }}
  restartPolicy: {{ .restartPolicy }}
  {{- end }}
  securityContext:
    {{- include "gateway.podSecurity" . | nindent 4 }}
  {{- if $values.spreadOverHosts }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "gateway.labels" . | nindent 10 }}
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "gateway.image" .root | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      {{- if .command }}
      command: {{ toJson .command }}
      {{- end }}
      env:
        {{- include "gateway.environment" . | trim | nindent 8 }}
      resources: {{ toJson .resources }}
      securityContext:
        {{- include "gateway.confined" . | nindent 8 }}
      {{- if has .component (list "web" "admin") }}
      ports: [{ name: http, containerPort: 8000 }]
      # Not /readyz: an outage of what all pods share would take them all out of service at once, and callers would get the
      # errors of the ingress instead of those that explain it, with Retry-After.
      startupProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 2, failureThreshold: 60 }
      livenessProbe: { httpGet: { path: /healthz, port: http }, timeoutSeconds: 3, failureThreshold: 6 }
      readinessProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 3, timeoutSeconds: 3, failureThreshold: 2 }
      # Waits until endpoints no longer route requests here.
      lifecycle: { preStop: { exec: { command: [sleep, "10"] } } }
      {{- else if ne .component "migrate" }}
      # The process touches the file while it works; a rollout goes on once it has done so.
      startupProbe:
        exec: { command: [sh, -c, "test -e /tmp/alive"] }
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 60
      livenessProbe:
        exec: { command: [sh, -c, "find /tmp/alive -mmin -1 | grep -q ."] }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      {{- end }}
      volumeMounts:
        - { name: tmp, mountPath: /tmp }
        {{- if eq (include "gateway.asks" .) "true" }}
        - { name: signer-tls, mountPath: /run/signer-tls, readOnly: true }
        {{- end }}
  volumes:
    - { name: tmp, emptyDir: { sizeLimit: 256Mi } }
    {{- if eq (include "gateway.asks" .) "true" }}
    - { name: signer-tls, secret: { secretName: {{ $values.signer.clientTlsSecretName }}, defaultMode: 0440 } }
    {{- end }}
{{- end -}}

{{/* A Deployment of that pod; without replicas if an autoscaler sets them. */}}
{{- define "gateway.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "gateway.labels" . | nindent 4 }}
spec:
  {{- if .replicas }}
  replicas: {{ .replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  # A new pod is ready before an old one is stopped.
  strategy: { type: RollingUpdate, rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } }
  selector:
    matchLabels:
      {{- include "gateway.labels" . | nindent 6 }}
  template:
    {{- include "gateway.pod" . | nindent 4 }}
{{- end -}}
