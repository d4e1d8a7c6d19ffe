package wish

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestAFilesystemThatAClassOnlyNamesIsWishedForWithoutDisks(t *testing.T) {
	names := func(filesystems ...string) func(*v1alpha1.PoolClassSpec) {
		return func(s *v1alpha1.PoolClassSpec) { s.Btrfs = &v1alpha1.BtrfsPools{Filesystems: filesystems} }
	}
	f := Facts{
		Classes: []v1alpha1.PoolClass{
			class("alone", 4, names("d")), class("younger", 1, names("b", "a")), class("older", 2, names("b", "made")), class("maker", 0, filesystem("made", "[ab]")),
			class("two", 0, func(s *v1alpha1.PoolClassSpec) { // it names them, and makes neither
				filesystem("d", "[ab]")(s)
				s.Btrfs.Filesystems = []string{"d", "b"}
			}),
			class("elsewhere", 3, func(s *v1alpha1.PoolClassSpec) {
				names("c")(s)
				s.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"disks": "many"}}
			}),
		},
		Pools: []provision.Pool{disk("sda"), disk("sdb", used)},
	}
	var got []string
	for _, w := range Wishes(f) {
		if w.Named && (len(w.Disks)+len(w.Search) > 0 || w.Check() != nil || w.Verb != decide.Ensure) {
			t.Errorf("asked %+v, %v", w, w.Check())
		}
		got = append(got, fmt.Sprintf("%s %s %v", w.Pool.Name, w.Class, w.Named))
	}
	if want := []string{"btrfs:made maker false", "btrfs:a younger true", "btrfs:b older true", "btrfs:d alone true"}; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}
