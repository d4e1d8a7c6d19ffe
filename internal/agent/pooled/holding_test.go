package pooled_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/agent/pooled"
	"berth.dev/berth/internal/provision"
)

func TestTheGuardIsToldOfNoVolumeThatIsNotProved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		content provision.Content
		want    error
	}{
		"a dataset":                     {provision.Content{Source: "tank/vol", Tree: provision.Dataset}, provision.ErrUnsupported},
		"a subvolume":                   {provision.Content{Source: "/dev/sda[/vol]", Identity: "btrfs:1", Tree: provision.Subvolume}, provision.ErrUnsupported},
		"a path that leads to no zvol":  {provision.Content{Source: file, Identity: provision.ZvolIdentity("tank/vol")}, provision.ErrNotFound},
		"a path that leads nowhere":     {provision.Content{Source: file + "x", Identity: provision.ZvolIdentity("tank/vol")}, provision.ErrUnavailable},
		"a device of no known identity": {provision.Content{Source: file}, provision.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if h, err := pooled.Holding(tc.content); !errors.Is(err, tc.want) || h.Device != "" {
				t.Errorf("the guard is told of %+v, %v; want %v", h, err, tc.want)
			}
		})
	}
}
