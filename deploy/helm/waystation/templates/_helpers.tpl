{{- define "waystation.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "waystation.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "waystation.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "waystation.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "waystation.selectorLabels" -}}
app.kubernetes.io/name: {{ include "waystation.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "waystation.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "waystation.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "waystation.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}

{{- define "waystation.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "waystation.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* Refuses values that could not serve, or would lose data. */}}
{{- define "waystation.check" -}}
{{- $secrets := .Values.secrets }}
{{- if eq .Values.database.engine "sqlite" }}
{{- if or (gt (int .Values.replicaCount) 1) .Values.autoscaling.enabled }}
{{- fail "database.engine=sqlite serves from one pod: set replicaCount=1, or database.engine=postgres" }}
{{- end }}
{{- else }}
{{- if not (or .Values.database.postgres.url .Values.database.postgres.existingSecret) }}
{{- fail "database.engine=postgres needs database.postgres.url or database.postgres.existingSecret" }}
{{- end }}
{{- if not (or $secrets.existingSecret (and $secrets.secretKey $secrets.cronSecret)) }}
{{- fail "database.engine=postgres needs the same secrets on every node: set secrets.existingSecret, or secrets.secretKey and secrets.cronSecret" }}
{{- end }}
{{- end }}
{{- range $name := list "HOST" "PORT" "DATA_DIR" "DATABASE_URL" "SECRET_KEY" "SECRET_KEY_PREVIOUS" "CRON_SECRET" }}
{{- if hasKey $.Values.config $name }}
{{- fail (printf "config.%s is set by the chart: see database and secrets" $name) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The secrets that the release keeps by itself. */}}
{{- define "waystation.ownSecrets" -}}
{{- if and (eq .Values.database.engine "postgres") .Values.database.postgres.url (not .Values.database.postgres.existingSecret) }}
database-url: {{ .Values.database.postgres.url | quote }}
{{- end }}
{{- if not .Values.secrets.existingSecret }}
{{- with .Values.secrets.secretKey }}
secret-key: {{ . | quote }}
{{- end }}
{{- with .Values.secrets.secretKeyPrevious }}
secret-key-previous: {{ . | quote }}
{{- end }}
{{- with .Values.secrets.cronSecret }}
cron-secret: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "waystation.pod" -}}
metadata:
  labels:
    {{- include "waystation.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/secrets: {{ include "waystation.ownSecrets" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "waystation.serviceAccountName" . }}
  # It calls no Kubernetes API, and takes no settings from variables that the cluster makes of services.
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: waystation
      image: {{ include "waystation.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      env:
        {{- include "waystation.env" . | nindent 8 }}
      ports:
        - name: http
          containerPort: 8420
        {{- with .Values.extraPorts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      # A start looks through a SQLite file of up to 1 GiB, and runs migrations.
      startupProbe:
        httpGet: { path: /livez, port: http }
        periodSeconds: 2
        failureThreshold: 150
      # The process answers. It must not be restarted because its database is away.
      livenessProbe:
        httpGet: { path: /livez, port: http }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: { path: /readyz, port: http }
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 2
      {{- if gt (int .Values.preStopSeconds) 0 }}
      lifecycle:
        preStop:
          sleep:
            seconds: {{ .Values.preStopSeconds }}
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /data
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  {{- if or (eq .Values.database.engine "postgres") .Values.extraVolumes }}
  volumes:
    {{- if eq .Values.database.engine "postgres" }}
    # Nodes keep nothing.
    - name: data
      emptyDir:
        sizeLimit: 16Mi
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
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
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if eq .Values.database.engine "postgres" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "waystation.selectorLabels" . | nindent 10 }}
  {{- end }}
{{- end }}

{{- define "waystation.env" -}}
- name: HOST
  value: {{ .Values.listenAddress | quote }}
- name: DATA_DIR
  value: /data
{{- if eq .Values.database.engine "postgres" }}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ default (include "waystation.fullname" .) .Values.database.postgres.existingSecret }}
      key: {{ ternary .Values.database.postgres.existingSecretKey "database-url" (ne .Values.database.postgres.existingSecret "") }}
{{- end }}
{{- range $variable, $key := dict "SECRET_KEY" "secret-key" "CRON_SECRET" "cron-secret" }}
{{- $own := ternary $.Values.secrets.secretKey $.Values.secrets.cronSecret (eq $key "secret-key") }}
{{- if or $.Values.secrets.existingSecret $own }}
- name: {{ $variable }}
  valueFrom:
    secretKeyRef:
      name: {{ default (include "waystation.fullname" $) $.Values.secrets.existingSecret }}
      key: {{ $key }}
{{- end }}
{{- end }}
{{- if or .Values.secrets.existingSecret .Values.secrets.secretKeyPrevious }}
- name: SECRET_KEY_PREVIOUS
  valueFrom:
    secretKeyRef:
      name: {{ default (include "waystation.fullname" .) .Values.secrets.existingSecret }}
      key: secret-key-previous
      # It is there only while SECRET_KEY is rotated.
      optional: true
{{- end }}
{{- range $name, $value := .Values.config }}
{{- if ne (toString $value) "" }}
- name: {{ $name }}
  value: {{ (kindIs "float64" $value) | ternary (int64 $value) $value | toString | quote }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
