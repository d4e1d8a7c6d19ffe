package inline

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/sets"

	"berth.dev/berth/internal/publish/kubeletdir"
)

// slow is an API server; while it answers, something happens on the node.
type slow struct {
	Pods
	meanwhile func()
}

func (s slow) Here(ctx context.Context) (sets.Set[string], error) {
	here, err := s.Pods.Here(ctx)
	s.meanwhile()
	return here, err
}

// The API server's answer is as old as the request.
func TestAVolumeWhosePodTheKubeletHasAgainIsNotSwept(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.reboot()
	n.kubeletForgets()
	n.here.Delete(uid)
	mounts := func() {
		if err := os.MkdirAll(n.target(), 0o750); err != nil {
			t.Error(err)
		}
	}
	n.Sweeper = NewSweeper(n.Service, slow{n, mounts}, n.clock, logr.Discard())
	n.sweep()
	if n.record() == nil {
		t.Error("the volume of a pod that the kubelet knows was removed")
	}
}

// A second look that fails proves nothing: the kubelet may have the pod again.
func TestAVolumeIsNotSweptWhenTheKubeletsDirectoryIsLostMeanwhile(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.reboot()
	n.kubeletForgets()
	n.here.Delete(uid)
	lost := func() { n.Service.kubelet = kubeletdir.New(n.dir + "/nowhere") }
	n.Sweeper = NewSweeper(n.Service, slow{n, lost}, n.clock, logr.Discard())
	if err := n.Sweep(t.Context(), n.Pools()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v; want %v", err, fs.ErrNotExist)
	}
	if n.record() == nil {
		t.Error("the volume was removed")
	}
}
