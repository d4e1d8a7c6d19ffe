package orphans

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
)

func TestOnlyChangesAreTold(t *testing.T) {
	lost := Orphan{v1alpha1.OrphanNoObject, "lost"}
	found := Orphan{v1alpha1.OrphanNotPlaced, "lost"}
	var s Set
	told := 0
	s.Notify(func() { told++ })
	for _, news := range []struct {
		change func() bool
		want   int
	}{
		{func() bool { return s.Add("a", lost) }, 1},
		{func() bool { return s.Add("a", lost) }, 1},
		{func() bool { return s.Add("a", found) }, 2},
		{func() bool { s.Forget("b"); return false }, 2},
		{func() bool { s.Inherit(nil); return false }, 2},
		{func() bool { s.Add("b", lost); s.Forget("a"); return false }, 4},
	} {
		before := told
		if isNews := news.change(); isNews && told == before || told != news.want {
			t.Errorf("told %d times, want %d", told, news.want)
		}
	}
	if diff := cmp.Diff(map[string]Orphan{"b": lost}, s.All()); diff != "" {
		t.Error(diff)
	}
}

func TestOrphansOfAnEarlierLifeAreSomeUntilTheyAreLookedAt(t *testing.T) {
	lost, found := Orphan{v1alpha1.OrphanNoObject, "lost"}, Orphan{v1alpha1.OrphanNoObject, "found"}
	var s Set
	s.Forget("a")
	s.Add("b", found)
	s.Inherit(map[string]Orphan{"a": lost, "b": lost, "c": lost, "d": lost})
	s.Forget("d")
	if diff := cmp.Diff(map[string]Orphan{"b": found, "c": lost}, s.All()); diff != "" {
		t.Error(diff)
	}
	s.Inherit(map[string]Orphan{"e": lost})
	if _, again := s.All()["e"]; again {
		t.Error("an earlier life was inherited twice")
	}
}

func TestAnOrphanIsKnownSinceItIsOneWithoutABreak(t *testing.T) {
	lost := Orphan{v1alpha1.OrphanNoObject, "lost"}
	now := time.Unix(0, 0)
	s := Set{Now: func() time.Time { return now }}
	known := func(want time.Duration) {
		t.Helper()
		if got := s.Known("a"); got != want {
			t.Errorf("known for %s, want %s", got, want)
		}
	}
	known(0)
	s.Inherit(map[string]Orphan{"a": lost})
	now = now.Add(time.Hour)
	known(time.Hour)
	s.Add("a", lost)
	now = now.Add(time.Hour)
	known(2 * time.Hour)
	s.Forget("a")
	known(0)
	s.Add("a", lost)
	now = now.Add(time.Minute)
	known(time.Minute)
}
