package linux

import (
	"testing"

	"github.com/moby/sys/mountinfo"

	"berth.dev/berth/internal/provision"
)

func TestADatasetIsKnownInTheMountTableByItsName(t *testing.T) {
	const dataset = "tank/pvc-1"
	for name, tc := range map[string]struct {
		line mountinfo.Info
		want bool
	}{
		"the dataset":                          {mountinfo.Info{FSType: "zfs", Source: dataset, Root: "/", Major: 0, Minor: 52}, true},
		"a different dataset":                  {mountinfo.Info{FSType: "zfs", Source: dataset + "0", Root: "/"}, false},
		"a snapshot of the dataset":            {mountinfo.Info{FSType: "zfs", Source: dataset + "@snap-1", Root: "/"}, false},
		"a directory in the dataset":           {mountinfo.Info{FSType: "zfs", Source: dataset, Root: "/sub"}, false},
		"a tmpfs with the name of the dataset": {mountinfo.Info{FSType: "tmpfs", Source: dataset, Root: "/"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			source, err := identify(provision.Content{Source: dataset, Tree: provision.Dataset})
			if err != nil {
				t.Fatal(err)
			}
			if got := source.holds(&tc.line); got != tc.want {
				t.Errorf("taken for it: %v", got)
			}
		})
	}
}
