package install

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/test/cluster"
)

// snapshotAPI is a package of the module that brings the definitions of the snapshot API.
const snapshotAPI = "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

// WithoutSnapshots is the value that leaves snapshots out, which the lab's values
// switch on.
const WithoutSnapshots = "snapshots.enabled=false"

func (c Config) snapshots() bool { return !slices.Contains(c.Set, WithoutSnapshots) }

// snapshotController is the Deployment that a cluster needs for snapshots beside the
// definitions of their API.
const snapshotController = "snapshot-controller"

// snapshotControllerImage begins the reference of its image, one of the lab's.
const snapshotControllerImage = "localhost/" + snapshotController + ":"

//go:embed snapshot-controller.yaml
var snapshotControllerObjects []byte

// MakeSnapshotAPI gives the cluster the snapshot API and its controller, which the chart
// expects if snapshots are switched on.
func (c Config) MakeSnapshotAPI(ctx context.Context, on *cluster.Cluster) error {
	if !c.snapshots() {
		return nil
	}
	definitions, err := c.snapshotDefinitions(ctx)
	if err != nil {
		return err
	}
	for _, text := range append(definitions, snapshotControllerObjects) {
		if err := apply(ctx, on, text); err != nil {
			return err
		}
	}
	return nil
}

// snapshotDefinitions returns the definitions of VolumeSnapshots, their contents and classes.
func (c Config) snapshotDefinitions(ctx context.Context) ([][]byte, error) {
	list := exec.CommandContext(ctx, "go", "list", "-f", "{{.Module.Dir}}", snapshotAPI)
	list.Dir = c.Root
	dir, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("looking for the definitions of the snapshot API: %w", err)
	}
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "snapshot.storage.k8s.io_*.yaml"))
	if err == nil && len(paths) != 3 {
		err = fmt.Errorf("the module of %s has %d of the three definitions", snapshotAPI, len(paths))
	}
	if err != nil {
		return nil, err
	}
	var texts [][]byte
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// apply applies the objects of a YAML text.
func apply(ctx context.Context, on *cluster.Cluster, text []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(o.Object) == 0 {
			continue
		}
		err := on.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("berth-lab"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
}
