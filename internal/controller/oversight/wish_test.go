package oversight

import (
	"errors"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

// attachments are the nodes of the record with their states.
func (w *world) attachments() string {
	w.t.Helper()
	var list []string
	for _, e := range w.volume().Status.Ownership.Replicas {
		list = append(list, e.Node+" "+string(e.State))
	}
	return strings.Join(list, ", ")
}

func TestAVolumeIsPublishedByTheWishOfAPod(t *testing.T) {
	free := given{"n1": {Fits: true, Slots: 1}, "n2": {Fits: true, Slots: 1}, "n3": {Fits: true, Slots: 1}}
	attached := func(state ownership.State) func(*ownership.Volume) {
		return func(v *ownership.Volume) { v.Replicas = []ownership.Replica{{Node: "n2", State: state}} }
	}
	wide := func(v *ownership.Volume) { v.Sharing.MaxShares = 3 }
	for name, test := range map[string]struct {
		volume *ownership.Volume
		places given
		node   string
		want   string
		class  error
		says   string
	}{
		"an attachment is begun":         {unused(), free, "n2", "n2 Reserved", nil, ""},
		"one is there already":           {shared(), free, "n1", "n1 Ready, n2 Ready", nil, ""},
		"one is gone":                    {unused(attached(ownership.Gone)), free, "n2", "n2 Reserved", nil, ""},
		"one is being removed":           {unused(attached(ownership.Removing)), free, "n2", "n2 Syncing", nil, ""},
		"a released one gets a third":    {shared(wide, phase(ownership.Released)), free, "n3", "n1 Ready, n2 Ready, n3 Reserved", nil, ""},
		"another node may write":         {shared(wide), free, "n3", "n1 Ready, n2 Ready", provision.ErrInUse, "published to node n1"},
		"also where it stands by":        {shared(), free, "n2", "n1 Ready, n2 Ready", provision.ErrInUse, "published to node n1"},
		"the node has no slot":           {unused(), given{"n2": {Fits: true}}, "n2", "", usecase.ErrUnplaceable, "no further disk can be attached to node n2"},
		"a standby makes room for a pod": {shared(phase(ownership.Released)), free, "n3", "n1 Ready, n2 Removing", usecase.ErrUnplaceable, "as many as it allows"},
		"the node is unknown":            {unused(), free, "n9", "", provision.ErrNotFound, "none of Berth's storage nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, test.volume), func(w *world) {
				r := Wishes{w.controller(func(r *Reconciler) { r.Places = test.places })}
				w.passes(time.Minute)
				for range 2 { // the second call changes nothing
					err := r.Publish(w.t.Context(), id, test.node)
					if !errors.Is(err, test.class) || err != nil && !strings.Contains(err.Error(), test.says) {
						t.Errorf("%v, want %v: %s", err, test.class, test.says)
					}
				}
				if got := w.attachments(); got != test.want {
					t.Errorf("the record has %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestAVolumeThatDoesNotExistIsPublishedNowhere(t *testing.T) {
	inWorld(t, cluster(t, unused()), func(w *world) {
		r := Wishes{w.controller()}
		if err := r.Publish(w.t.Context(), "other", "n1"); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("publishing it: %v", err)
		}
		if err := r.Unpublish(w.t.Context(), "other", "n1"); err != nil {
			t.Errorf("it is not published, and unpublishing it fails: %v", err)
		}
	})
}

func TestUnpublishingKeepsTheAttachmentsAndBeginsTheirDeadline(t *testing.T) {
	inWorld(t, cluster(t, shared(phase(ownership.Released))), func(w *world) {
		r := Wishes{w.controller()}
		w.passes(time.Minute)
		for _, node := range []string{"n1", "n1", ""} {
			if err := r.Unpublish(w.t.Context(), id, node); err != nil {
				t.Error(err)
			}
		}
		o := w.volume().Status.Ownership
		if w.attachments() != "n1 Ready, n2 Ready" || o.ExpireAt == nil || time.Until(o.ExpireAt.Time) > ownership.ClaimWithin+ownership.ExpireAfter {
			t.Errorf("attached are %s until %v", w.attachments(), o.ExpireAt)
		}
		w.passes(ownership.ClaimWithin + ownership.ExpireAfter)
		w.oversees(r.Reconciler)
		if got := w.attachments(); got != "n1 Removing, n2 Removing" {
			t.Errorf("after the deadline attached are %s", got)
		}
	})
}

func TestANodeThatMayStillWriteIsNotUnpublished(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) {
		r := Wishes{w.controller()}
		w.passes(time.Minute)
		for _, node := range []string{"n1", ""} {
			if err := r.Unpublish(w.t.Context(), id, node); !errors.Is(err, usecase.ErrBusy) {
				t.Errorf("node %q: %v", node, err)
			}
		}
		if err := r.Unpublish(w.t.Context(), id, "n2"); err != nil {
			t.Errorf("a standby: %v", err)
		}
		edits(w, node("n1"), tainted) // now it was shut out
		w.oversees(r.Reconciler)
		if err := r.Unpublish(w.t.Context(), id, "n1"); err != nil {
			t.Errorf("after the fence: %v", err)
		}
	})
}

// A node that is away keeps who asks it waiting. After a fence both calls are on the way of a failover.
func TestPublishingAsksNoNodesIfTheRecordSaysEnough(t *testing.T) {
	for name, test := range map[string]struct {
		v     *ownership.Volume
		class error
	}{
		"the attachment is there": {shared(phase(ownership.Fenced)), nil},
		"another node may write":  {shared(), provision.ErrInUse},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cluster(t, test.v), func(w *world) {
				r, asked := Wishes{w.controller()}, 0
				w.peers.before = func() { asked++ }
				if err := r.Publish(w.t.Context(), id, "n2"); !errors.Is(err, test.class) || asked != 0 {
					t.Errorf("published after %d questions to the nodes: %v", asked, err)
				}
			})
		})
	}
}
