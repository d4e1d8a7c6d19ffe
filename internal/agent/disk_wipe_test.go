package agent

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/released"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

// Hold implements released.Machine.
func (k *kernel) Hold(c provision.Content) (released.Device, error) {
	if c.Identity != diskIdentity {
		return nil, provision.ErrUnavailable
	}
	d, err := k.node.Open(lineage.Epoch{})
	return &erased{reader{k.m}, d}, err
}

// erased is the device that is wiped. The target judges each write.
type erased struct {
	reader
	open *simdisk.Device
}

func (*erased) Discard(int64, int64) error { return errors.ErrUnsupported }

func (e *erased) Overwrite(offset, length int64) error {
	if err := e.open.Write("zeros"); err != nil {
		return err
	}
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	clear(e.m.data[offset : offset+length])
	return nil
}

func (e *erased) Close() error { e.open.Close(); return nil }

// released makes a LUN of the scene's disk whose wipe is ordered from a node. Its volume's last epoch has a number.
func (s *scene) released(node string, number int64) *v1alpha1.LUN {
	s.t.Helper()
	last := v1alpha1.Epoch{Number: number, ID: "tenant"}
	wipe := v1alpha1.Epoch{Number: number + 1, ID: "wipe"}
	had := &v1alpha1.LUNVolume{Name: v1alpha1.VolumeName(s.t.Name() + "-tenant"), UID: "1"}
	l := &v1alpha1.LUN{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeName(s.t.Name() + "-lun")}, Spec: v1alpha1.LUNSpec{
		Disk:     v1alpha1.SharedDisk{Handle: "sim:///disk", Identity: diskIdentity},
		Capacity: resource.MustParse("16Mi"), PoolClass: "san", Persistent: true,
	}}
	if err := s.Client.Create(s.t.Context(), l); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.Client.Delete(context.WithoutCancel(s.t.Context()), l) })
	for _, status := range []v1alpha1.LUNStatus{
		{State: v1alpha1.LUNBound, Volume: had},
		{State: v1alpha1.LUNReleased, Volume: had, Wipe: &v1alpha1.LUNWipe{Mode: v1alpha1.Block, Epoch: last}},
		{State: v1alpha1.LUNWiping, Volume: had, Wipe: &v1alpha1.LUNWipe{
			Mode: v1alpha1.Block, Epoch: wipe, Node: s.nodes[node].name, Keys: []v1alpha1.ReservationKey{{Node: s.nodes[node].name, Epoch: wipe}},
		}},
	} {
		l.Status = status
		if err := s.Client.Status().Update(s.t.Context(), l); err != nil {
			s.t.Fatal(err)
		}
	}
	return l
}

// wipeEnds waits until the node has taken its name off, and returns how the wipe ended.
func (s *scene) wipeEnds(l *v1alpha1.LUN) *v1alpha1.LUNWipe {
	s.t.Helper()
	now := &v1alpha1.LUN{}
	await(s.t, "the end of the wipe", func() bool {
		now = &v1alpha1.LUN{}
		return s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(l), now) == nil && now.Status.Wipe.Node == ""
	})
	return now.Status.Wipe
}

// blank says whether the disk is zeros.
func (m *medium) blank() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(bytes.Trim(m.data, "\x00")) == 0
}

func TestAnAgentWipesTheLUNThatIsOrderedFromItsNode(t *testing.T) {
	s, m := inMemory(t)
	copy(m.data[5<<20:], "of the tenant")
	l := s.released(beta, 3)
	if w := s.wipeEnds(l); w.Outcome != v1alpha1.LUNCleared || w.Done != 16<<20 || !m.blank() {
		t.Errorf("the wipe ended as %+v, and the disk is blank: %v", w, m.blank())
	}
	s.begins(alpha) // the next volume of the disk, which takes it from the key that the wipe has left
	s.ends(alpha)
}

// The record of the volume that uses the disk is unknown to the LUN, as after a backup.
func TestAnAgentDoesNotWipeADiskThatAVolumeHas(t *testing.T) {
	s, m := inMemory(t)
	s.begins(alpha)
	before := bytes.Clone(m.data)
	l := s.released(beta, 1)
	if w := s.wipeEnds(l); w.Outcome != v1alpha1.LUNWipeFailed || w.Problem == "" {
		t.Errorf("the wipe ended as %+v", w)
	}
	if !bytes.Equal(before, m.data) {
		t.Error("the disk of a volume is wiped")
	}
	if err := s.nodes[alpha].made.write(s.nodes[alpha].pod(), "still there"); err != nil {
		t.Error(err)
	}
	s.ends(alpha)
}
