package wish

import (
	"slices"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/provision"
)

func filesystem(name, pattern string) func(*v1alpha1.PoolClassSpec) {
	return func(s *v1alpha1.PoolClassSpec) {
		s.Btrfs = &v1alpha1.BtrfsPools{Filesystems: []string{name}, Create: &v1alpha1.GroupCreation{Disks: sd(pattern)}}
	}
}

func TestAFilesystemIsMadeOfEmptyDisksAndSearchedForOnUsedOnes(t *testing.T) {
	f := Facts{
		Classes: []v1alpha1.PoolClass{class("b", 1, filesystem("data", "[ab]"))},
		Pools:   []provision.Pool{disk("sdb", used), disk("sda"), disk("sdc", used)},
	}
	asked := func(search, disks []string) {
		t.Helper()
		w := Wishes(f)[0]
		if w.Pool != (provision.PoolRef{Type: provision.Btrfs, Name: "btrfs:data"}) || !slices.Equal(w.Search, search) || !slices.Equal(w.Disks, disks) || w.Check() != nil || w.Verb != decide.Ensure {
			t.Errorf("asked %+v, %v", w, w.Check())
		}
	}
	asked([]string{"/dev/sdb"}, []string{"disk:sda"})
	f.Listed = []string{"btrfs:data"} // it was here, and may be on a disk
	asked([]string{"/dev/sdb"}, nil)
	f.Pools = append(f.Pools, pool(provision.Btrfs, "btrfs:data"))
	asked(nil, []string{"disk:sda"})
}
