package schedule

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/storageclass"
)

// shop has classes local (waits), eager (does not wait) and cloud (another
// driver's), and the claims that are given.
func shop(claims ...*corev1.PersistentVolumeClaim) *objects {
	o := &objects{
		claims: map[string]*corev1.PersistentVolumeClaim{}, pvs: map[string]*corev1.PersistentVolume{}, volumes: map[string]*v1alpha1.Volume{},
		berth: map[string]*v1alpha1.Snapshot{}, snapshots: map[string]*VolumeSnapshot{},
		classes: map[string]*storagev1.StorageClass{
			"local": local(),
			"eager": storageClass("eager", v1alpha1.LocalDriverName, storagev1.VolumeBindingImmediate),
			"cloud": storageClass("cloud", "cloud.example", storagev1.VolumeBindingWaitForFirstConsumer),
		},
	}
	for _, c := range claims {
		o.claims[claimKey(c)] = c
	}
	return o
}

func (o *objects) with(pv *corev1.PersistentVolume, v *v1alpha1.Volume) *objects {
	o.pvs[pv.Name] = pv
	if v != nil {
		o.volumes[v.Name] = v
	}
	return o
}

func read(t *testing.T, o *objects, pod *corev1.Pod) *PodVolumes {
	t.Helper()
	got, err := Reader{driver.Local(), o}.Read(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestClaimsAndInlineVolumesOfAPodBecomeDemands(t *testing.T) {
	owned := func(c *corev1.PersistentVolumeClaim) {
		c.Name = "web-1"
		c.OwnerReferences = []metav1.OwnerReference{{UID: "web", Controller: new(true)}}
	}
	tests := map[string]struct {
		objects *objects
		pod     *corev1.Pod
		demands []ledger.Demand
	}{
		"a claim":                                  {shop(pvc("1", gi)), podWith(claimVolume("1")), []ledger.Demand{demand("1", gi)}},
		"several claims":                           {shop(pvc("1", gi), pvc("2", 2*gi)), podWith(claimVolume("1"), claimVolume("2")), []ledger.Demand{demand("1", gi), demand("2", 2*gi)}},
		"the same claim twice":                     {shop(pvc("1", gi)), podWith(claimVolume("1"), claimVolume("1")), []ledger.Demand{demand("1", gi)}},
		"a claim below the smallest":               {shop(pvc("1", 1)), podWith(claimVolume("1")), []ledger.Demand{demand("1", 32*mi)}},
		"a claim beside a claim of another driver": {shop(pvc("1", gi), pvc("2", gi, ofClass("cloud"))), podWith(claimVolume("1"), claimVolume("2")), []ledger.Demand{demand("1", gi)}},
		"an ephemeral claim":                       {shop(pvc("1", gi, owned)), podWith(ephemeralVolume("1", "local")), []ledger.Demand{demand("1", gi)}},
		"an inline volume": {shop(), podWith(scratch("1Gi")),
			[]ledger.Demand{{Owner: ledger.Inline("web", "scratch"), Class: "fast", Bytes: gi, Namespace: "shop"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := read(t, test.objects, test.pod)
			if got.Unready != "" {
				t.Fatalf("not ready: %s", got.Unready)
			}
			if diff := cmp.Diff(test.demands, got.Demands()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPodsThatWantNothingOfBerth(t *testing.T) {
	bound := pvc("3", gi, boundTo("cloud-pv"))
	o := shop(pvc("2", gi, ofClass("cloud")), bound)
	o.pvs["cloud-pv"] = &corev1.PersistentVolume{}
	for name, pod := range map[string]*corev1.Pod{
		"no volumes":                           podWith(),
		"a config map":                         podWith(corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}),
		"a claim of another driver":            podWith(claimVolume("2")),
		"a volume of another driver":           podWith(claimVolume("3")),
		"an inline volume of another driver":   podWith(inlineVolume("s", "secrets.example", nil)),
		"an unknown claim":                     podWith(claimVolume("9")),
		"an ephemeral claim of another driver": podWith(ephemeralVolume("9", "cloud")),
	} {
		if got := read(t, o, pod); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhyAPodHasToWait(t *testing.T) {
	tests := map[string]struct {
		objects *objects
		pod     *corev1.Pod
		told    string
	}{
		"a claim that does not wait":        {shop(pvc("1", gi, ofClass("eager"))), podWith(claimVolume("1")), `claim "1" is to be bound before`},
		"a claim that is being deleted":     {shop(pvc("1", gi, func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} })), podWith(claimVolume("1")), `claim "1" is being deleted`},
		"an ephemeral claim to be made":     {shop(), podWith(ephemeralVolume("1", "local")), `claim "web-1" of an ephemeral volume is not made yet`},
		"an ephemeral claim of another pod": {shop(pvc("1", gi, func(c *corev1.PersistentVolumeClaim) { c.Name = "web-1" })), podWith(ephemeralVolume("1", "local")), "was not made for the pod"},
		"an inline volume without size":     {shop(), podWith(inlineVolume("s", v1alpha1.LocalDriverName, map[string]string{"poolClass": "fast"})), `inline volume "s": volumeAttribute "size" is required`},
		"a claim that many nodes share":     {shop(pvc("1", gi, func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes[0] = corev1.ReadWriteMany })), podWith(claimVolume("1")), "access mode ReadWriteMany is not supported"},
		"options of mkfs, of filesystems":   {shop(pvc("1", gi)).poolsOf(v1alpha1.ProvisionerBtrfs, map[string]string{"mkfsOptions": "-m 1"}), podWith(claimVolume("1")), "no mkfs makes a filesystem of Btrfs"},
		"ext4, of filesystems":              {shop(pvc("1", gi)).poolsOf(v1alpha1.ProvisionerBtrfs, map[string]string{storageclass.FSTypeKey: "ext4"}), podWith(claimVolume("1")), "filesystem ext4 is for PoolClasses that have block devices"},
		"a raw block device of filesystems": {shop(pvc("1", gi, raw)).poolsOf(v1alpha1.ProvisionerBtrfs, nil), podWith(claimVolume("1")), "which has no raw block volumes"},
		"a claim that is much too large":    {shop(pvc("1", 1<<61)), podWith(claimVolume("1")), `claim "1": 2097152Ti is more than`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := read(t, test.objects, test.pod)
			if got == nil || !strings.Contains(got.Unready, test.told) || len(got.Wanted) != 0 {
				t.Errorf("got %+v, want %q", got, test.told)
			}
		})
	}
}

// poolsOf sets the provisioner of the PoolClass of all claims, and parameters of their StorageClass.
func (o *objects) poolsOf(provisioner v1alpha1.ProvisionerType, parameters map[string]string) *objects {
	c := &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	c.Spec.Provisioner = provisioner
	o.pools = map[string]*v1alpha1.PoolClass{"fast": c}
	maps.Copy(o.classes["local"].Parameters, parameters)
	return o
}

func raw(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }

// CreateVolume gives a claim that names no filesystem the default of its PoolClass. The node is to
// be one that can make it.
func TestAClaimNeedsANodeThatMakesTheFilesystemOfItsPoolClass(t *testing.T) {
	ext4, options := map[string]string{storageclass.FSTypeKey: "ext4"}, map[string]string{"mkfsOptions": "-m 1"}
	for name, tc := range map[string]struct {
		objects *objects
		feature string
	}{
		"no filesystem, of zpools":              {shop(pvc("1", gi)).poolsOf(v1alpha1.ProvisionerZFS, nil), v1alpha1.FeatureDatasets},
		"ext4, of zpools":                       {shop(pvc("1", gi)).poolsOf(v1alpha1.ProvisionerZFS, ext4), ""},
		"a raw block device, of zpools":         {shop(pvc("1", gi, raw)).poolsOf(v1alpha1.ProvisionerZFS, nil), ""},
		"no filesystem, of filesystems":         {shop(pvc("1", gi)).poolsOf(v1alpha1.ProvisionerBtrfs, nil), ""},
		"no filesystem, of volume groups":       {shop(pvc("1", gi)).poolsOf(v1alpha1.ProvisionerLVM, nil), ""},
		"options of mkfs, of volume groups":     {shop(pvc("1", gi)).poolsOf(v1alpha1.ProvisionerLVM, options), v1alpha1.FeatureMkfsOptions},
		"no filesystem, of an unknown class":    {shop(pvc("1", gi)), ""},
		"the filesystem of a source, of zpools": {shop(pvc("1", gi, from(groupSnapshot, kindSnapshot, "7"))).poolsOf(v1alpha1.ProvisionerZFS, nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.objects.snapshots = map[string]*VolumeSnapshot{}
			tc.objects.taken("7", "n1")
			got := read(t, tc.objects, podWith(claimVolume("1")))
			if got.Unready != "" || got.Wanted[0].Demand.Feature != tc.feature {
				t.Errorf("got %+v, want feature %q", got, tc.feature)
			}
			if asked := got.Wanted[0].Request.FSType; asked != "" && asked != v1alpha1.Ext4 {
				t.Errorf("CreateVolume is not asked for %s", asked)
			}
		})
	}
}

func TestTheRequestIsCreateVolumes(t *testing.T) {
	got := read(t, shop(pvc("1", gi)), podWith(claimVolume("1"))).Wanted[0].Request
	if got.Name != "pvc-"+string(uidOf("1")) || got.Mode != v1alpha1.Filesystem || got.FSType != "" || got.Size.Required != gi || got.Size.Limit != 0 {
		t.Errorf("got %+v", got)
	}
	if want := (v1alpha1.ClaimReference{Namespace: "shop", Name: "1", UID: uidOf("1")}); *got.Claim != want {
		t.Errorf("claim is %+v", *got.Claim)
	}
}

func TestHoldersAreTheNodesWithReplicasOfAPodsVolumes(t *testing.T) {
	pv, v := pvFor("1", "n1"), volumeFor("1", "n1", gi)
	claim := pvc("1", gi, boundTo(pv.Name))
	replicated := v.DeepCopy()
	replicated.Spec.Replicas = append(replicated.Spec.Replicas, v1alpha1.ReplicaSpec{Node: "n2", Pool: "vg0"}, v1alpha1.ReplicaSpec{Node: "n3", Pool: "vg0"})
	replicated.Status.Replicas = append(replicated.Status.Replicas,
		v1alpha1.ReplicaStatus{Node: "n2", State: v1alpha1.ReplicaReady, Ready: true},
		v1alpha1.ReplicaStatus{Node: "n3", State: v1alpha1.ReplicaFailed},
		v1alpha1.ReplicaStatus{Node: "n4", State: v1alpha1.ReplicaReady, Ready: true}) // to be removed
	replicated.Status.Ownership = &v1alpha1.Ownership{Primary: v1alpha1.Primary{Node: "n1"}}
	several := replicated.DeepCopy()
	several.Status.Ownership.Writers = []v1alpha1.Writer{{Node: "n1", Phase: v1alpha1.PrimaryActive}, {Node: "n2", Phase: v1alpha1.PrimaryActive}, {Node: "n3", Phase: v1alpha1.PrimaryFenced}}
	tests := map[string]struct {
		volume *v1alpha1.Volume
		want   []Holder
	}{
		"two nodes that write":      {several, []Holder{{pv.Name, "n1", Primary}, {pv.Name, "n2", Primary}, {pv.Name, "n3", Unfit}}},
		"a single copy":             {v, []Holder{{pv.Name, "n1", Standby}}},
		"three copies":              {replicated, []Holder{{pv.Name, "n1", Primary}, {pv.Name, "n2", Standby}, {pv.Name, "n3", Unfit}}},
		"a volume that is not seen": {nil, []Holder{{pv.Name, "n1", Primary}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := read(t, shop(claim).with(pv, test.volume), podWith(claimVolume("1")))
			if diff := cmp.Diff(test.want, got.Holders); diff != "" || len(got.Wanted) != 0 {
				t.Errorf("%+v\n%s", got, diff)
			}
		})
	}
}

func TestAPodWithoutClaimsCostsNothing(t *testing.T) {
	pod := podWith(corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}, inlineVolume("s", "secrets.example", nil))
	r, ctx := Reader{driver.Local(), shop()}, t.Context()
	if n := testing.AllocsPerRun(100, func() { _, _ = r.Read(ctx, pod) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
