package device_test

import (
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
)

// A caller that stages a volume again that an older Berth gave to a pod distinguishes this error
// from all others.
func TestADiskThatIsInUseIsNotRecordedAsGivenToAPodBeforeItIsLetGo(t *testing.T) {
	m := disks()
	n := start(t, m)
	v := n.create(t, id, pool("naa.a"))
	r := provision.FormatRequest{ID: id, Filesystem: provision.Raw}
	unmount := m.Mount(v.Content.Source)
	if _, err := n.Format(t.Context(), r); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("error %v; want %v", err, provision.ErrInUse)
	}
	if got, err := n.Get(t.Context(), id); err != nil || got != v {
		t.Errorf("%+v, %v; want %+v", got, err, v)
	}
	unmount()
	defer m.Open(v.Content.Source)() // as a program does that only reads and writes
	if got, err := n.Format(t.Context(), r); err != nil || got.Filesystem != provision.Raw {
		t.Errorf("%+v, %v", got, err)
	}
}
