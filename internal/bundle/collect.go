package bundle

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/plain"
)

const (
	// MaxObjects is how many objects of a kind a bundle has.
	MaxObjects = 10000
	// MaxLogs is how many logs a bundle has.
	MaxLogs = 400
	// page is how many objects one request asks for.
	page = 500
)

// LogReader opens the log of a container. previous asks for that of the instance before.
type LogReader func(ctx context.Context, pod client.ObjectKey, container string, previous bool) (io.ReadCloser, error)

// Report is a text that is computed, as status or doctor.
type Report struct {
	Name string
	Make func(ctx context.Context) ([]byte, error)
}

// Options say what to collect.
type Options struct {
	Manifest Manifest
	// Folder that the files of the archive are in.
	Folder  string
	Reader  client.Reader
	Logs    LogReader
	Reports []Report
	// Progress receives a line for each part.
	Progress io.Writer
}

// kind is a kind of objects that a bundle has.
type kind struct {
	schema.GroupVersionKind
	// system: only those in the namespace of Berth. labelled: only those with Berth's label.
	system, labelled bool
	// wanted, if it is set, chooses among the objects.
	wanted func(o *unstructured.Unstructured, system string) bool
}

func of(group, version, name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: name}
}

// kinds are all kinds that a bundle has. Secret is none of them.
var kinds = []kind{
	{GroupVersionKind: of("berth.dev", "v1alpha1", "PoolClass")},
	{GroupVersionKind: of("berth.dev", "v1alpha1", "StorageNode")},
	{GroupVersionKind: of("berth.dev", "v1alpha1", "Volume")},
	{GroupVersionKind: of("berth.dev", "v1alpha1", "Snapshot")},
	{GroupVersionKind: of("berth.dev", "v1alpha1", "LUN")},
	{GroupVersionKind: of("storage.k8s.io", "v1", "StorageClass")},
	{GroupVersionKind: of("storage.k8s.io", "v1", "CSIDriver"), wanted: func(o *unstructured.Unstructured, _ string) bool { return ours(o.GetName()) }},
	{GroupVersionKind: of("storage.k8s.io", "v1", "CSINode")},
	{GroupVersionKind: of("storage.k8s.io", "v1", "CSIStorageCapacity"), system: true},
	{GroupVersionKind: of("storage.k8s.io", "v1", "VolumeAttachment"), wanted: func(o *unstructured.Unstructured, _ string) bool {
		attacher, _, _ := unstructured.NestedString(o.Object, "spec", "attacher")
		return ours(attacher)
	}},
	{GroupVersionKind: of("", "v1", "Node")},
	{GroupVersionKind: of("", "v1", "PersistentVolume")},
	{GroupVersionKind: of("", "v1", "PersistentVolumeClaim")},
	{GroupVersionKind: of("", "v1", "Pod"), wanted: concerned},
	{GroupVersionKind: of("", "v1", "Event"), wanted: tells},
	{GroupVersionKind: of("", "v1", "ConfigMap"), system: true, labelled: true},
	{GroupVersionKind: of("apps", "v1", "Deployment"), system: true, labelled: true},
	{GroupVersionKind: of("apps", "v1", "DaemonSet"), system: true, labelled: true},
	{GroupVersionKind: of("coordination.k8s.io", "v1", "Lease"), system: true},
	{GroupVersionKind: of("snapshot.storage.k8s.io", "v1", "VolumeSnapshot")},
	{GroupVersionKind: of("snapshot.storage.k8s.io", "v1", "VolumeSnapshotContent"), wanted: func(o *unstructured.Unstructured, _ string) bool {
		driver, _, _ := unstructured.NestedString(o.Object, "spec", "driver")
		return ours(driver)
	}},
}

// concerned says whether a pod is Berth's, or has a claim or an inline volume of Berth's.
func concerned(o *unstructured.Unstructured, system string) bool {
	if o.GetNamespace() == system {
		return true
	}
	volumes, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumes")
	return slices.ContainsFunc(volumes, func(v any) bool {
		volume, _ := v.(map[string]any)
		csi, _ := volume["csi"].(map[string]any)
		driver, _ := csi["driver"].(string)
		return volume["persistentVolumeClaim"] != nil || volume["ephemeral"] != nil || ours(driver)
	})
}

// storageEvents match the reasons of events of pods that are about their volumes. Events about their
// programs, such as the output of a probe, can have anything in them.
var storageEvents = regexp.MustCompile(`Schedul|Mount|Volume|Attach|FileSystem`)

// tells says whether an event is Berth's, or about storage.
func tells(o *unstructured.Unstructured, system string) bool {
	about, _, _ := unstructured.NestedString(o.Object, "involvedObject", "kind")
	api, _, _ := unstructured.NestedString(o.Object, "involvedObject", "apiVersion")
	reason, _, _ := unstructured.NestedString(o.Object, "reason")
	return o.GetNamespace() == system || strings.HasPrefix(api, v1alpha1.GroupVersion.Group+"/") ||
		slices.Contains([]string{"PersistentVolumeClaim", "PersistentVolume", "VolumeSnapshot", "Node"}, about) ||
		about == "Pod" && storageEvents.MatchString(reason)
}

// Write collects a bundle. The error says that the archive could not be written: what could not be
// read is in the manifest, which is returned.
func Write(ctx context.Context, to io.Writer, o Options) (Manifest, error) {
	a := newArchive(to, o.Folder, o.Manifest)
	var own []unstructured.Unstructured
	for _, k := range kinds {
		found, err := o.objects(ctx, a, k)
		if err != nil {
			return a.manifest, err
		}
		if k.Kind == "Pod" {
			own = slices.DeleteFunc(found, func(p unstructured.Unstructured) bool {
				return p.GetNamespace() != o.Manifest.Namespace || p.GetLabels()["app.kubernetes.io/name"] != "berth"
			})
		}
	}
	for _, r := range o.Reports {
		path := "reports/" + r.Name
		o.say(path)
		text, err := r.Make(ctx)
		if err != nil {
			a.miss(path, err)
			continue
		}
		if err := a.add(path, []byte(Scrub(string(text))), false); err != nil {
			return a.manifest, err
		}
	}
	if err := o.logs(ctx, a, own); err != nil {
		return a.manifest, err
	}
	if err := ctx.Err(); err != nil {
		return a.manifest, err
	}
	return a.manifest, a.close()
}

func (o Options) say(path string) {
	_, _ = fmt.Fprintln(o.Progress, path) // progress that cannot be shown is no reason to end
}

// objects writes the objects of a kind, and returns them as they were written.
func (o Options) objects(ctx context.Context, a *archive, k kind) ([]unstructured.Unstructured, error) {
	path := "objects/" + strings.ToLower(k.Kind) + "s.yaml"
	o.say(path)
	found, cut, err := o.list(ctx, k)
	if err != nil {
		a.miss(path, err)
		if meta.IsNoMatchError(err) {
			a.manifest.Missing[len(a.manifest.Missing)-1].Reason = "the cluster has no objects of this kind"
		}
		return nil, nil
	}
	kept := found[:0]
	var text []byte
	for i := range found {
		if k.wanted != nil && !k.wanted(&found[i], o.Manifest.Namespace) || !Redact(&found[i], o.Manifest.Namespace) {
			continue
		}
		document, err := plain.YAML(found[i].Object)
		if err != nil {
			a.miss(path, err)
			continue
		}
		if len(text)+len(document) > MaxFile {
			cut = true
			break
		}
		text = append(append(text, "---\n"...), document...)
		kept = append(kept, found[i])
	}
	return kept, a.add(path, text, cut)
}

func (o Options) list(ctx context.Context, k kind) (found []unstructured.Unstructured, cut bool, err error) {
	options := []client.ListOption{client.Limit(page)}
	if k.system {
		options = append(options, client.InNamespace(o.Manifest.Namespace))
	}
	if k.labelled {
		options = append(options, client.MatchingLabels{"app.kubernetes.io/name": "berth"})
	}
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		if err := o.Reader.List(ctx, list, append(options, client.Continue(next))...); err != nil {
			return nil, false, err
		}
		for i := range list.Items { // items of a list need not name their kind
			list.Items[i].SetGroupVersionKind(k.GroupVersionKind)
		}
		found = append(found, list.Items...)
		if next = list.GetContinue(); next == "" {
			return found, false, nil
		}
		if len(found) >= MaxObjects {
			return found, true, nil
		}
	}
}

// logs writes the logs of Berth's own pods: of each container this instance and, where it was
// restarted, the one before.
func (o Options) logs(ctx context.Context, a *archive, pods []unstructured.Unstructured) error {
	n := 0
	for i := range pods {
		for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
			containers, _, _ := unstructured.NestedSlice(pods[i].Object, "status", field)
			for _, c := range containers {
				container, _ := c.(map[string]any)
				name, _ := container["name"].(string)
				restarts, _, _ := unstructured.NestedInt64(container, "restartCount")
				for _, previous := range []bool{false, true}[:min(restarts, 1)+1] {
					if n++; n > MaxLogs {
						a.miss("logs", fmt.Errorf("a bundle has at most %d logs", MaxLogs))
						return nil
					}
					if err := o.log(ctx, a, client.ObjectKeyFromObject(&pods[i]), name, previous); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (o Options) log(ctx context.Context, a *archive, pod client.ObjectKey, container string, previous bool) error {
	path := "logs/" + pod.Name + "/" + container + ".log"
	if previous {
		path = "logs/" + pod.Name + "/" + container + ".previous.log"
	}
	o.say(path)
	from, err := o.Logs(ctx, pod, container, previous)
	if err != nil {
		a.miss(path, err)
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(from, MaxFile+1))
	_ = from.Close() // it was only read
	if err != nil {
		a.miss(path, fmt.Errorf("after %d bytes: %w", len(text), err))
	}
	return a.add(path, []byte(Scrub(string(text))), len(text) > MaxFile)
}
