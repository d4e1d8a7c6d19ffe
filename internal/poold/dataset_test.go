package poold_test

import (
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
)

func TestConformanceOfDatasetsAcrossTheSocket(t *testing.T) { conformance.Run(t, datasets) }

func TestConformanceOfDatasetsSnapshotsAcrossTheSocket(t *testing.T) {
	conformance.RunSnapshots(t, datasets)
}

// datasets is a node with a zpool whose volumes are filesystems, behind one socket.
func datasets(t *testing.T) conformance.Harness {
	h := zpools(t)
	h.Filesystem = provision.Dataset
	return h
}
