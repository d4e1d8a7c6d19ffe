package orphans

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyChangesAreTold(t *testing.T) {
	var s Set
	told := 0
	s.Notify(func() { told++ })
	for _, news := range []struct {
		change func() bool
		want   int
	}{
		{func() bool { return s.Add("a", "lost") }, 1},
		{func() bool { return s.Add("a", "lost") }, 1},
		{func() bool { return s.Add("a", "found") }, 2},
		{func() bool { s.Forget("b"); return false }, 2},
		{func() bool { s.Add("b", "lost"); s.Forget("a"); return false }, 4},
	} {
		before := told
		if isNews := news.change(); isNews && told == before || told != news.want {
			t.Errorf("told %d times, want %d", told, news.want)
		}
	}
	if diff := cmp.Diff(map[string]string{"b": "lost"}, s.All()); diff != "" {
		t.Error(diff)
	}
}
