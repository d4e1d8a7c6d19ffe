package inline

import (
	"context"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/sets"
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

// The API server's answer is as old as the question.
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
