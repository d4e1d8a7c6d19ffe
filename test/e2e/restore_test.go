//go:build e2e && thorough

package e2e

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller"
	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/install"
)

// restored is a cluster with volumes of all kinds, before and after its API server goes
// back to a backup.
type restored struct {
	orphans
	thick, thin string // classes
	backup      string

	// inBackup are volumes that the backup knows. grown was expanded after it.
	inBackup     []*kept
	grown, files *kept
	taken        *snapshotv1.VolumeSnapshot

	// deleted is a volume that the backup also knows, and whose data is gone.
	deleted *kept

	// late names claims that the backup has without a volume and without a pod, each with
	// the scheduler of its pod. latest is a volume of a claim that the backup does not have.
	late   map[string]cluster.PodOption
	kept   map[string]*kept // late and latest, by the name of the claim
	latest *kept
	later  *v1alpha1.Snapshot
	inIt   int // least number of lines in the log of later
}

func TestAnAPIServerThatGoesBackDestroysNoData(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		wake func(*restored)
	}{
		"the revisions go on":   {nil, func(*restored) {}},
		"the revisions go back": {[]string{"--back-in-time"}, (*restored).startAnew},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRestored(t)
			r.volumesBefore()
			r.lab("api", "backup", r.backup)
			r.changesAfter()
			r.lab(append([]string{"api", "restore", r.backup}, test.args...)...)
			r.stay("when the API server had gone back", time.Second)
			test.wake(r)
			r.awaitOrphans(thinNode, append(r.names(), r.later.Name)...)
			r.ownersReturn()
			r.adoptAll()
		})
	}
}

// newRestored makes two thick pools of the same size, and a thin one.
func newRestored(t *testing.T) *restored {
	t.Helper()
	b := beginFor(t, 15*limit)
	p := pools{b}
	r := &restored{orphans: orphans{b}, backup: filepath.Join(t.TempDir(), "backup"), kept: map[string]*kept{}}
	r.late = map[string]cluster.PodOption{"late": berth, "late-stock": stock}
	var groups []string
	for _, name := range []string{"one", "two"} {
		device, group := p.plugged(thinNode, "1G"), name+"-"+b.namespace
		groups = append(groups, group)
		b.onNode(thinNode, "vgcreate", group, device)
		b.Cleanup(func() { b.onNode(thinNode, "vgremove", "--yes", "--force", group) })
	}
	r.thick = p.class("thick", v1alpha1.PoolClassSpec{
		Provisioner:  v1alpha1.ProvisionerLVM,
		NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: thinNode}},
		LVM:          &v1alpha1.LVMPools{VolumeGroups: groups},
	})
	r.thin = p.thin("restored", "ext4")
	return r
}

// volumesBefore makes the volumes, snapshots and claims that are in the backup.
func (r *restored) volumesBefore() {
	r.files = keep(r.bench, r.claim("thin-files", r.thin, "64Mi"))
	r.grown = keep(r.bench, r.claim("grown", r.thick, "64Mi"))
	r.inBackup = []*kept{r.files, r.grown, keep(r.bench, r.claim("files", r.thick, "64Mi")),
		keep(r.bench, r.claim("disk", r.thick, "16Mi", cluster.Raw)), keep(r.bench, r.claim("thin-disk", r.thin, "16Mi", cluster.Raw))}
	r.taken, _ = r.snapshot("taken", r.thin, r.files.claim)
	r.deleted = keep(r.bench, r.claim("deleted", r.thick, "16Mi", cluster.Raw))
	for name := range r.late {
		r.claim(name, r.thick, "64Mi")
	}
}

// changesAfter makes the changes between the backup and the restore.
func (r *restored) changesAfter() {
	r.remove(r.deleted.pod)
	r.remove(r.deleted.claim)
	wiped(r.bench, thinNode, r.deleted.name)

	for name, scheduler := range r.late {
		claim := cluster.Claim(r.namespace, name, r.thick, "64Mi")
		r.kept[name] = keep(r.bench, claim, scheduler)
	}
	r.latest = keep(r.bench, r.claim("latest", r.thick, "16Mi", cluster.Raw))
	r.kept["latest"] = r.latest
	r.resize(r.grown.claim, "128Mi")
	r.must(cluster.Await(r.within(), r.Cluster, r.grown.claim, "128Mi", cluster.HasCapacity("128Mi")), "growing")
	r.grown.fill(70) // more than it could have held

	for _, k := range r.all() {
		k.readsAll()
	}
	r.inIt = r.files.lines
	_, r.later = r.snapshot("later", r.thin, r.files.claim)
	// Fill the pool that has the volume: a scheduler would now take the other pool.
	r.onNode(thinNode, "lvcreate", "--yes", "--name", "foreign", "--extents", "90%FREE", r.kept["late"].group)
}

// all returns the volumes whose data must be there.
func (r *restored) all() []*kept {
	return slices.AppendSeq(slices.Clone(r.inBackup), maps.Values(r.kept))
}

// names returns the names of the volumes that the backup does not know.
func (r *restored) names() []string {
	var names []string
	for _, k := range r.kept {
		names = append(names, k.name)
	}
	return names
}

// startAnew restarts kubelets and controllers, as Kubernetes' documentation asks for after a
// restore: when revisions go back, a client that watches is not told of any change.
func (r *restored) startAnew() {
	r.stay("while nobody noticed", controller.ReservationDelay)
	nodes, err := install.Nodes(r.within(), r.Lab)
	r.must(err, "asking for the nodes")
	for _, n := range nodes {
		r.onNode(n.Name, "pkill", "-x", "kubelet")
	}
	for _, namespace := range []string{metav1.NamespaceSystem, install.Namespace} {
		var pods corev1.PodList
		r.must(r.List(r.within(), &pods, client.InNamespace(namespace)), "listing pods")
		for i := range pods.Items {
			r.remove(&pods.Items[i])
		}
	}
	r.must(install.Config{}.Await(r.within(), r.Cluster), "starting Berth anew")
}

// stay reads all volumes on their node again and again, for a time in which something
// might destroy them. It ends the test as soon as one has changed.
func (r *restored) stay(during string, d time.Duration) {
	r.Helper()
	all := r.all()
	over := time.NewTimer(d)
	defer over.Stop()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		for _, k := range all {
			if err := k.onDisk(); err != nil {
				r.Fatalf("%s, data was destroyed: %v\n%s", during, err, r.onNode(thinNode, "lvs", "-o", "+lv_tags"))
			}
		}
		select {
		case <-over.C:
			return
		case <-r.ctx.Done():
			r.Fatal(r.ctx.Err())
		case <-tick.C:
		}
	}
}

// ownersReturn makes the pods again, as their owners do, and then deletes them. After each of
// the two it waits as long as Berth takes to collect a reservation: meanwhile nothing
// may destroy data.
func (r *restored) ownersReturn() {
	var pods []*corev1.Pod
	for name, scheduler := range r.late {
		pod := cluster.Pod(r.namespace, name, []*corev1.PersistentVolumeClaim{r.kept[name].claim}, scheduler, cluster.OnNode(thinNode), cluster.Steadfast)
		r.create(pod)
		pods = append(pods, pod)
	}
	r.stay("when pods were made for claims that the backup has unbound", controller.ReservationDelay+time.Minute)
	for _, pod := range pods {
		r.remove(pod)
	}
	r.stay("when these pods were deleted again", controller.ReservationDelay+time.Minute)
	for _, k := range r.inBackup {
		k.readsAll()
	}
	lost := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: r.deleted.name}}
	r.must(cluster.Await(r.within(), r.Cluster, lost, "known as lost", func(v *v1alpha1.Volume) bool {
		e := v.Entry(thinNode)
		return e != nil && e.Reason == v1alpha1.ReasonDeviceMissing
	}), "missing what was deleted")
	if group := groupOf(r.bench, lost.Name); group != "" {
		r.Errorf("the volume that was deleted was made again, empty, in %s", group)
	}
}

// adoptAll gives all kept data to claims again, and has their pods read it.
func (r *restored) adoptAll() {
	r.claim(r.latest.claim.Name, r.thick, "16Mi", cluster.Raw)
	for name, k := range r.kept {
		k.claim = cluster.Claim(r.namespace, name, "", "1")
		r.must(r.Get(r.within(), client.ObjectKeyFromObject(k.claim), k.claim), "reading the claim")
		if k.claim.Spec.VolumeName == "" {
			r.plugin("adopt", thinNode, k.name, "--claim", name)
		}
		k.again()
		r.setPolicy(k.name, corev1.PersistentVolumeReclaimDelete) // for the end of the test
	}
	r.apply(r.plugin("adopt", thinNode, r.later.Name, "--volume-snapshot", r.namespace+"/found"))
	found := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "found"}}
	r.must(cluster.Await(r.within(), r.Cluster, found, "ready to use", cluster.ReadyToUse), "adopting the snapshot")
	r.deletes(r.contentOf(found), snapshotv1.VolumeSnapshotContentDelete) // for the end of the test
	for name, lines := range map[string]int{r.taken.Name: 0, found.Name: r.inIt} {
		k := &kept{bench: r.bench, claim: r.claim("from-"+name, r.thin, "64Mi", cluster.FromSnapshot(name)), sum: r.files.sum, lines: lines}
		k.again()
	}
}
