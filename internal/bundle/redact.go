package bundle

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"berth.dev/berth/api/v1alpha1"
)

// Redacted stands where a value was taken out.
const Redacted = "REDACTED"

// annotations with these prefixes are Berth's, or are written by Kubernetes' volume controllers.
// The values of all others are taken out.
var annotations = []string{
	"berth.dev/", "agent.berth.dev/", "replica.berth.dev/", "topology.berth.dev/",
	"volume.kubernetes.io/", "pv.kubernetes.io/", "volume.beta.kubernetes.io/", "storageclass.kubernetes.io/",
	"deployment.kubernetes.io/revision", "helm.sh/resource-policy",
}

// containerFields are kept of a container. Commands, environments, probes and hooks can have
// passwords in them.
var containerFields = []string{"name", "image", "imagePullPolicy", "resources", "ports", "securityContext", "volumeMounts", "volumeDevices"}

// podFields are kept of the spec of a pod.
var podFields = []string{
	"nodeName", "nodeSelector", "affinity", "tolerations", "priority", "priorityClassName", "schedulerName", "restartPolicy",
	"hostNetwork", "hostPID", "serviceAccountName", "securityContext", "topologySpreadConstraints",
}

// Redact takes out of an object what can be a secret. It returns false for an object that has to
// stay out of the bundle as a whole. system is the namespace of Berth.
func Redact(o *unstructured.Unstructured, system string) bool {
	if o.GetKind() == "Secret" {
		return false
	}
	redactMetadata(o.Object)
	switch o.GetKind() {
	case "Pod":
		redactPod(o.Object)
		if o.GetNamespace() != system {
			redactLastWords(o.Object)
		}
	case "Deployment", "DaemonSet":
		if template, found, _ := unstructured.NestedMap(o.Object, "spec", "template"); found {
			redactMetadata(template)
			redactPod(template)
			_ = unstructured.SetNestedMap(o.Object, template, "spec", "template") // spec is a map: it was read from it
		}
	case "ConfigMap":
		if o.GetLabels()["app.kubernetes.io/name"] != "berth" {
			redactValues(o.Object, "data")
			redactValues(o.Object, "binaryData")
		}
	case "PersistentVolume":
		if driver, _, _ := unstructured.NestedString(o.Object, "spec", "csi", "driver"); !ours(driver) {
			return false
		}
	case "StorageClass":
		if provisioner, _, _ := unstructured.NestedString(o.Object, "provisioner"); !ours(provisioner) {
			return false
		}
	}
	o.Object, _ = scrubbed(o.Object).(map[string]any)
	return true
}

// ours says whether a CSI driver is one of Berth's.
func ours(driver string) bool {
	return driver == v1alpha1.LocalDriverName || strings.HasSuffix(driver, ".berth.dev")
}

func redactMetadata(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	given, _ := metadata["annotations"].(map[string]any)
	for key := range given {
		if !slices.ContainsFunc(annotations, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			given[key] = Redacted
		}
	}
}

func redactValues(object map[string]any, field string) {
	values, _ := object[field].(map[string]any)
	for key := range values {
		values[key] = Redacted
	}
}

func redactPod(pod map[string]any) {
	spec, _ := pod["spec"].(map[string]any)
	if spec == nil {
		return
	}
	kept := only(spec, podFields)
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers, _ := spec[list].([]any)
		var out []any
		for _, c := range containers {
			container, _ := c.(map[string]any)
			out = append(out, only(container, containerFields))
		}
		if out != nil {
			kept[list] = out
		}
	}
	volumes, _ := spec["volumes"].([]any)
	var out []any
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		out = append(out, podVolume(volume))
	}
	if out != nil {
		kept["volumes"] = out
	}
	pod["spec"] = kept
}

// redactLastWords takes out the messages of containers: that of one that has ended can be the tail of its log.
func redactLastWords(pod map[string]any) {
	for _, list := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		status, _ := pod["status"].(map[string]any)
		containers, _ := status[list].([]any)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			for _, when := range []string{"state", "lastState"} {
				state, _ := container[when].(map[string]any)
				for _, how := range []string{"terminated", "waiting"} {
					detail, _ := state[how].(map[string]any)
					delete(detail, "message")
				}
			}
		}
	}
}

// podVolume keeps the claim of a pod's volume, or Berth's own attributes. Of any other volume it
// keeps the name and the type.
func podVolume(volume map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range volume {
		source, isMap := value.(map[string]any)
		driver, _ := source["driver"].(string)
		switch {
		case key == "name", key == "persistentVolumeClaim":
			out[key] = value
		case key == "csi" && ours(driver):
			out[key] = only(source, []string{"driver", "fsType", "readOnly", "volumeAttributes"})
		case isMap:
			out[key] = map[string]any{}
		}
	}
	return out
}

func only(from map[string]any, fields []string) map[string]any {
	to := map[string]any{}
	for _, f := range fields {
		if value, found := from[f]; found {
			to[f] = value
		}
	}
	return to
}

// scrubbed returns a value whose texts are scrubbed.
func scrubbed(value any) any {
	switch v := value.(type) {
	case string:
		return Scrub(v)
	case []any:
		for i := range v {
			v[i] = scrubbed(v[i])
		}
	case map[string]any:
		for key := range v {
			if text, isText := v[key].(string); isText && text != "" && telling.MatchString(key) {
				v[key] = Redacted
				continue
			}
			v[key] = scrubbed(v[key])
		}
	}
	return value
}

// telling matches the keys whose values are credentials.
var telling = regexp.MustCompile(`(?i)passw(or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|chap`)

// credentials match what looks like a credential in a text. The first group, if there is one, stays.
var credentials = []*regexp.Regexp{
	regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){1,2}`), // JSON web tokens, as service accounts have
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9+/._~=-]{6,}`),
	regexp.MustCompile(`(://)[^/\s:@"']*:[^/\s@"']+@`), // user and password in an address
	regexp.MustCompile(`(?i)((?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|chap)[a-z0-9_.-]*\\?["']?\s*[:=]\s*)(?:\\?"(?:[^"\\]|\\[^"])*\\?"|'[^']*'|[^\s,;}"']+)`),
}

// Scrub takes out of a text what looks like a credential.
func Scrub(text string) string {
	for _, c := range credentials {
		with := Redacted
		if c.NumSubexp() > 0 {
			with = "${1}" + Redacted
		}
		text = c.ReplaceAllString(text, with)
	}
	return text
}
