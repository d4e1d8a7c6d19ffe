package agent

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/trim"
	"berth.dev/berth/internal/publish/staging"
)

func TestAStagedVolumeIsTrimmedAsOftenAsItsClassSays(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	s := newSite(t, "")
	s.clock = clock
	pc, sc := s.classes()
	pc.Spec.TrimInterval = &metav1.Duration{Duration: 2 * time.Hour}
	s.create(pc, sc, s.volume("a"))
	defer s.finish("a")
	a := s.start()
	await(t, "the volume", func() bool { e := s.entry("a"); return e != nil && e.State == v1alpha1.ReplicaReady })
	id, at := v1alpha1.VolumeName(s.name+"a"), filepath.Join(s.dir, "plugins/kubernetes.io/csi/local.berth.dev/0a/globalmount")
	volumes := a.staging()
	if err := volumes.Stage(t.Context(), staging.StageRequest{ID: id, Path: at}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := volumes.Unstage(context.WithoutCancel(t.Context()), id, at); err != nil {
			t.Error(err)
		}
	}()
	book := trim.Book{Files: journal.Dir(filepath.Join(s.dir, "plugins/local.berth.dev/trims"))}
	var first time.Time
	await(t, "a trim", func() bool {
		clock.Step(time.Minute)
		kept, err := book.Load(id)
		first = kept.Trimmed
		return err == nil && !first.IsZero()
	})
	await(t, "the next one", func() bool {
		clock.Step(time.Minute)
		kept, err := book.Load(id)
		return err == nil && kept.Trimmed.After(first)
	})
	if n, err := testutil.GatherAndCount(a.options.Registry, "berth_volume_trimmed_timestamp_seconds"); err != nil || n != 1 {
		t.Errorf("the last trim of %d volumes is shown, %v", n, err)
	}
}
