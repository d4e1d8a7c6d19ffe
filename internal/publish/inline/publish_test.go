package inline

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

func TestAVolumeIsMadeForItsPodOnceAndMounted(t *testing.T) {
	n := newNode(t)
	n.class.Spec.LVM.Wipe = v1alpha1.WipeZero
	for range 3 {
		n.publish()
		n.restart()
	}
	r := n.record()
	if r == nil || r.Inline != owner || r.Filesystem != provision.Ext4 || r.Size != 512*mib {
		t.Fatalf("record %+v", r)
	}
	if r.Pool != vg0 {
		t.Errorf("the volume is in %s, where there is less room than in vg0", r.Pool.Name)
	}
	if got := n.mounts.Mounts(r.Content.Source); len(got) != 1 || got[0] != n.target() {
		t.Errorf("mounted at %v", got)
	}
	if got := n.disks.Labels(id); got["pod"] != "web-0" || got["namespace"] != "shop" {
		t.Errorf("labels %v", got)
	}
	if got := n.disks.Wipe(id); got != provision.WipeZero {
		t.Errorf("wiped by %q", got)
	}
	figures, err := n.Stats(t.Context(), h, n.target())
	if err != nil || figures.Total != 512*mib || figures.Block {
		t.Errorf("figures %+v, %v", figures, err)
	}
}

func TestAnUnreasonableRequestMakesNothing(t *testing.T) {
	for what, tc := range map[string]struct {
		change func(n *node, r *PublishRequest)
		want   error
	}{
		"the id of a claim's volume":               {func(_ *node, r *PublishRequest) { r.Handle = "pvc-" + uid }, provision.ErrInvalid},
		"an id that is too short":                  {func(_ *node, r *PublishRequest) { r.Handle = "csi-0123" }, provision.ErrInvalid},
		"the target of another pod":                {func(_ *node, r *PublishRequest) { r.PodUID = "another" }, provision.ErrInvalid},
		"a target outside the kubelet's directory": {func(_ *node, r *PublishRequest) { r.Target = "/etc/pods/" + uid }, provision.ErrInvalid},
		"a target that belongs to no volume":       {func(n *node, r *PublishRequest) { r.Target = n.dir + "/pods/x" }, provision.ErrInvalid},
		"too small for ext4":                       {func(_ *node, r *PublishRequest) { r.Size = 31 * mib }, provision.ErrInvalid},
		"too small for xfs": {func(_ *node, r *PublishRequest) { r.Filesystem, r.Size = provision.XFS, 299*mib },
			provision.ErrInvalid},
		"an unknown filesystem":      {func(_ *node, r *PublishRequest) { r.Filesystem = "ntfs" }, provision.ErrInvalid},
		"a dangerous option":         {func(_ *node, r *PublishRequest) { r.Options = []string{"suid"} }, provision.ErrInvalid},
		"a size beyond every pool":   {func(_ *node, r *PublishRequest) { r.Size = 3 * gib }, provision.ErrNoSpace},
		"an unknown class":           {func(n *node, _ *PublishRequest) { n.class = nil }, provision.ErrUnavailable},
		"a class without pools here": {func(n *node, _ *PublishRequest) { n.class.Spec.LVM.VolumeGroups = []string{"vg9"} }, provision.ErrPoolMissing},
		"a class that selects other nodes": {func(n *node, _ *PublishRequest) {
			n.class.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"ssd": "yes"}}
		}, provision.ErrPoolMissing},
		"a class without inline volumes":              {func(n *node, _ *PublishRequest) { n.class.Spec.InlineVolumes = nil }, provision.ErrInvalid},
		"a class for a namespace with a similar name": {func(_ *node, r *PublishRequest) { r.PodNamespace = "shopping" }, provision.ErrInvalid},
		"a pod without a namespace":                   {func(_ *node, r *PublishRequest) { r.PodNamespace = "" }, provision.ErrInvalid},
		"a size that would use the spare": {func(n *node, _ *PublishRequest) {
			n.class.Spec.Spare, n.class.Spec.SparePercent = new(resource.MustParse("512Mi")), 60
		}, provision.ErrNoSpace},
	} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t)
			r := n.request()
			tc.change(n, &r)
			if err := n.Publish(t.Context(), r); !errors.Is(err, tc.want) {
				t.Errorf("error %v; want %v", err, tc.want)
			}
			if got := n.left(); got != nothing {
				t.Errorf("left on the node: %s", got)
			}
		})
	}
}

func TestAPodKeepsItsInlineVolumeThoughItsClassAllowsNoneLater(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.class.Spec.InlineVolumes = nil
	n.restart()
	n.publish()
	if n.record() == nil || !n.mounted() {
		t.Error("the pod has lost its volume")
	}
}

func TestAClassMayAdmitThePodsOfEveryNamespace(t *testing.T) {
	n := newNode(t)
	n.class.Spec.InlineVolumes.Namespaces = []string{"*"}
	n.publish()
	if n.record() == nil {
		t.Error("nothing was made")
	}
}

func TestAVolumeIsMadeWhereThereIsMostRoom(t *testing.T) {
	n := newNode(t)
	if err := n.disks.PutForeign(vg0, "root", 1280*mib); err != nil {
		t.Fatal(err)
	}
	n.publish()
	if r := n.record(); r.Pool != vg1 {
		t.Errorf("the volume is in %s, where there is less room than in vg1", r.Pool.Name)
	}
}

func TestAPoolThatWasLostOrFilledMeanwhileIsPassedOver(t *testing.T) {
	for what, changes := range map[string]func(n *node) error{
		"the preferred pool is full": func(n *node) error { return n.disks.PutForeign(vg0, "root", 2*gib) },
		"the preferred pool is gone": func(n *node) error { n.disks.RemovePool(vg0); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t)
			n.offers = stale{n, n.Pools()}
			if err := changes(n); err != nil {
				t.Fatal(err)
			}
			n.publish()
			if r := n.record(); r.Pool != vg1 {
				t.Errorf("the volume is in %s", r.Pool.Name)
			}
		})
	}
}

// A pool that fails may have made the volume all the same.
func TestAfterAPoolThatFailsNoOtherIsTried(t *testing.T) {
	n := newNode(t)
	n.offers = stale{n, n.Pools()}
	n.disks.SetProblem(vg0, "a disk is missing")
	if err := n.Publish(t.Context(), n.request()); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("error %v; want %v", err, provision.ErrUnavailable)
	}
	if got := n.left(); got != nothing {
		t.Errorf("left on the node: %s", got)
	}
}

func TestAVolumeThatAnEarlierTryMadeInAnotherPoolIsUsed(t *testing.T) {
	n := newNode(t)
	n.publish()
	if err := n.marks.Remove(Mark{id, owner}); err != nil { // as if the process had ended after it made the volume
		t.Fatal(err)
	}
	n.reboot()
	if err := n.disks.PutForeign(vg0, "root", 1024*mib); err != nil { // now vg1 has more room
		t.Fatal(err)
	}
	n.publish()
	if r := n.record(); r.Pool != vg0 || !n.mounted() {
		t.Errorf("the volume is in %s, mounted: %v", r.Pool.Name, n.mounted())
	}
}

// LVM needs a process to be sure that there is no volume.
func TestANewVolumeIsNotLookedForFirst(t *testing.T) {
	n := newNode(t)
	counting := &lookups{Disks: n.Service.disks}
	n.Service.disks = counting
	n.publish()
	if counting.n != 0 {
		t.Errorf("%d lookups before the volume was made", counting.n)
	}
}

// lookups counts calls of Get.
type lookups struct {
	Disks
	n int
}

func (l *lookups) Get(ctx context.Context, id string) (provision.Volume, error) {
	l.n++
	return l.Disks.Get(ctx, id)
}

func TestARefusalNamesTheBestPoolAndTheVolume(t *testing.T) {
	n := newNode(t)
	r := n.request()
	r.Size = 3 * gib
	err := n.Publish(t.Context(), r)
	if err == nil || !strings.Contains(err.Error(), "vg0") || !strings.Contains(err.Error(), name) {
		t.Errorf("error %v; want the pool and the volume's name in it", err)
	}
}

func TestAVolumeIsNotGivenToAnotherPod(t *testing.T) {
	n := newNode(t)
	_, err := n.pool.Create(t.Context(), provision.CreateRequest{
		ID: id, Pool: vg0, Size: 512 * mib, Inline: provision.Inline{PodUID: "another", Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Publish(t.Context(), n.request()); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("publishing: %v; want %v", err, provision.ErrConflict)
	}
	if err := n.Unpublish(t.Context(), h, n.target()); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("unpublishing: %v; want %v", err, provision.ErrConflict)
	}
	if n.record() == nil {
		t.Error("the other pod's data was deleted")
	}
}

// A blank volume in the place of one that was used is a loss, too.
func TestABlankVolumeThatWasInUseIsNotFormatted(t *testing.T) {
	n := newNode(t)
	if err := n.marks.Set(Mark{id, owner}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.pool.Create(t.Context(), provision.CreateRequest{ID: id, Pool: vg0, Size: 512 * mib, Inline: owner}); err != nil {
		t.Fatal(err)
	}
	if err := n.Publish(t.Context(), n.request()); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("error %v; want %v", err, provision.ErrNotFound)
	}
	if n.record().Filesystem != "" {
		t.Error("it was formatted")
	}
}

func TestAPodComesBackToItsDataWithoutTheAPIServer(t *testing.T) {
	n := newNode(t)
	n.publish()
	n.class = nil
	n.reboot()
	n.publish()
	if !n.mounted() {
		t.Error("the volume is not mounted")
	}
}

func TestOnlyAMountedVolumeHasFigures(t *testing.T) {
	n := newNode(t)
	if _, err := n.Stats(t.Context(), h, n.target()); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("before it is made: %v; want %v", err, provision.ErrNotFound)
	}
	n.publish()
	n.reboot()
	if _, err := n.Stats(t.Context(), h, n.target()); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("after a reboot: %v; want %v", err, provision.ErrNotFound)
	}
}

// stale offers the pools of an older report.
type stale struct {
	Offers
	pools []provision.Pool
}

func (s stale) Pools() []provision.Pool { return s.pools }
