{{- define "berth.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "berth.fullname" -}}
{{- default (printf "%s-%s" .Release.Name (include "berth.name" .)) .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "berth.labels" -}}
app.kubernetes.io/name: {{ include "berth.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* selector: list root "component" */}}
{{- define "berth.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "berth.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* image: list root image */}}
{{- define "berth.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $registry := $root.Values.imageRegistry | default $image.registry | default "" -}}
{{- if not $registry -}}
{{- fail (printf "the image %s has no registry: set imageRegistry to the registry that `make push` brought the images to. A chart that was released with a registry needs no such value." $image.repository) -}}
{{- end -}}
{{- $digest := "" -}}
{{- with $image.digest }}{{ $digest = printf "@%s" . }}{{ end -}}
{{ printf "%s/%s:%s%s" (trimSuffix "/" $registry) $image.repository ($image.tag | default $root.Chart.AppVersion) $digest | quote }}
{{- end -}}

{{/* apart: list root "component". Each pod of a component prefers a node without another. */}}
{{- define "berth.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "berth.selector" . | nindent 12 }}
{{- end -}}

{{/* minor is the newest Kubernetes for which there is a berth-scheduler that is no newer than the cluster. */}}
{{- define "berth.minor" -}}
{{- $cluster := .Capabilities.KubeVersion.Version -}}
{{- if semverCompare ">=1.37-0" $cluster -}}
v1-37
{{- else if semverCompare ">=1.36-0" $cluster -}}
v1-36
{{- else -}}
{{- fail (printf "this cluster is Kubernetes %s, and berth-scheduler is for 1.36 and later: a scheduler must not be newer than its API server. Leave scheduler.enabled off: the cluster's own scheduler places pods by what the nodes publish." $cluster) -}}
{{- end -}}
{{- end -}}

{{/* controllers is how many controllers run. The leader alone answers the extender. */}}
{{- define "berth.controllers" -}}
{{ .Values.controller.replicaCount | default (ternary 1 2 .Values.extender.enabled) }}
{{- end -}}
