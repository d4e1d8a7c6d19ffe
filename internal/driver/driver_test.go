package driver

import (
	"context"
	"errors"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
)

// other is a second driver, as a process may serve it beside the first one.
func other() Driver {
	return Driver{
		Name: "other.example.org", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod},
		Why: "it is for one pod", Inline: true, Capacity: true,
	}
}

// drivers are two that are served side by side, each with the one whose objects it leaves alone.
func drivers() map[string][2]Driver {
	return map[string][2]Driver{"the local driver": {Local(), other()}, "another driver": {other(), Local()}}
}

func volume(of Driver) *v1alpha1.Volume {
	v := &v1alpha1.Volume{}
	v.Name = "pvc-of-" + of.Name
	of.sign(v)
	return v
}

func snapshot(of Driver) *v1alpha1.Snapshot {
	s := &v1alpha1.Snapshot{}
	s.Name = "snap-of-" + of.Name
	of.sign(s)
	return s
}

func TestADriverKnowsItsOwnObjectsByTheirNameForIt(t *testing.T) {
	for name, pair := range drivers() {
		for of, own := range map[Object]bool{volume(pair[0]): true, snapshot(pair[0]): true, volume(pair[1]): false, snapshot(pair[1]): false} {
			if got := pair[0].Owns(of); got != own {
				t.Errorf("%s owns %+v: %v", name, of, got)
			}
		}
		for of, own := range map[string]bool{pair[0].Name: true, pair[1].Name: false} {
			pv := &corev1.PersistentVolume{}
			pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: of, VolumeHandle: "v"}
			inline := &corev1.Volume{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: of}}}
			class := &storagev1.StorageClass{Provisioner: of}
			d := pair[0]
			if (d.Handle(pv) == "v") != own || d.Describes(inline) != own || d.Provisions(class) != own || d.Took(of) != own {
				t.Errorf("%s, objects of %s: %q, %v, %v, %v", name, of, d.Handle(pv), d.Describes(inline), d.Provisions(class), d.Took(of))
			}
		}
	}
}

func TestADriverWithoutInlineVolumesHasNone(t *testing.T) {
	d := other()
	d.Inline = false
	if d.Describes(&corev1.Volume{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: d.Name}}}) {
		t.Error("it has one")
	}
}

func TestNoDriverOwnsNothing(t *testing.T) {
	var none Driver
	pv := &corev1.PersistentVolume{}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{VolumeHandle: "v"}
	if none.Owns(&v1alpha1.Volume{}) || none.Handle(pv) != "" || none.Provisions(&storagev1.StorageClass{}) || none.Took("") {
		t.Error("the zero value serves something")
	}
}

func TestAVolumeThatNamesNoDriverIsLocal(t *testing.T) {
	if !Local().Owns(&v1alpha1.Volume{}) || !Local().Owns(&v1alpha1.Snapshot{}) || other().Owns(&v1alpha1.Volume{}) {
		t.Error("volumes that an older Berth made have no driver, or two")
	}
	if v := volume(Local()); v.Spec.Driver != "" {
		t.Errorf("the local driver writes its name, %q, which older versions of Berth drop", v.Spec.Driver)
	}
}

func TestAnAccessModeIsRefusedWithTheDriversReason(t *testing.T) {
	for mode, want := range map[corev1.PersistentVolumeAccessMode]string{
		corev1.ReadWriteOncePod: "",
		corev1.ReadWriteOnce:    "access mode ReadWriteOnce is not supported: it is for one pod",
	} {
		if got := other().Supports(mode); got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
	}
	if Local().Supports(corev1.ReadWriteOnce) != "" || Local().Supports(corev1.ReadWriteMany) == "" {
		t.Error("the local driver shares its modes with the other one")
	}
}

// both is an API server with a volume and a snapshot of each driver.
func both(t *testing.T) *lagging.Server {
	t.Helper()
	return lagging.New(t, volume(Local()), snapshot(Local()), volume(other()), snapshot(other()))
}

func TestAViewHasOnlyTheObjectsOfItsDriver(t *testing.T) {
	server := both(t)
	for name, pair := range drivers() {
		c := pair[0].View(server.Client())
		own, foreign := volume(pair[0]), volume(pair[1])
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(own), &v1alpha1.Volume{}); err != nil {
			t.Errorf("%s: its volume: %v", name, err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(foreign), &v1alpha1.Volume{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the other one's volume: %v", name, err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(snapshot(pair[1])), &v1alpha1.Snapshot{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the other one's snapshot: %v", name, err)
		}
		listed(t, name, c, pair[0])
	}
}

// listed checks that a reader lists the objects of one driver, and no others.
func listed(t *testing.T, name string, r client.Reader, of Driver) {
	t.Helper()
	var volumes v1alpha1.VolumeList
	var snapshots v1alpha1.SnapshotList
	if err := errors.Join(r.List(t.Context(), &volumes, client.UnsafeDisableDeepCopy), r.List(t.Context(), &snapshots)); err != nil {
		t.Fatal(err)
	}
	if len(volumes.Items) != 1 || volumes.Items[0].Name != volume(of).Name || len(snapshots.Items) != 1 || snapshots.Items[0].Name != snapshot(of).Name {
		t.Errorf("%s lists %+v and %+v", name, volumes.Items, snapshots.Items)
	}
}

// "Not found" would say that data of that name belongs to no object.
func TestALiveReaderSaysThatAnObjectIsForeignAndNotThatItIsMissing(t *testing.T) {
	server := both(t)
	for name, pair := range drivers() {
		r := pair[0].Live(server.Live())
		err := r.Get(t.Context(), client.ObjectKeyFromObject(volume(pair[1])), &v1alpha1.Volume{})
		if !errors.Is(err, ErrForeign) || apierrors.IsNotFound(err) {
			t.Errorf("%s: the other one's volume: %v", name, err)
		}
		if err := r.Get(t.Context(), client.ObjectKeyFromObject(volume(pair[0])), &v1alpha1.Volume{}); err != nil {
			t.Errorf("%s: its volume: %v", name, err)
		}
		if err := r.Get(t.Context(), client.ObjectKey{Name: "none"}, &v1alpha1.Volume{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: no volume: %v", name, err)
		}
		listed(t, name, r, pair[0])
	}
}

func TestWhatADriverCreatesIsItsOwn(t *testing.T) {
	for name, pair := range drivers() {
		server := lagging.New(t)
		v := volume(pair[1]) // another driver's name in it does not count
		if err := pair[0].View(server.Client()).Create(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if err := server.Live().Get(t.Context(), client.ObjectKeyFromObject(v), v); err != nil || v.DriverName() != pair[0].Name {
			t.Errorf("%s made a volume of %s: %v", name, v.DriverName(), err)
		}
	}
}

// older is an API server whose definitions have no driver.
type older struct{ client.Client }

func (o older) Create(ctx context.Context, made client.Object, options ...client.CreateOption) error {
	switch made := made.(type) {
	case *v1alpha1.Volume:
		made.Spec.Driver = ""
	case *v1alpha1.Snapshot:
		made.Spec.Driver = ""
	}
	return o.Client.Create(ctx, made, options...)
}

func TestAnObjectThatTheServerGivesToAnotherDriverIsNotMade(t *testing.T) {
	for name, d := range map[string]Driver{"the local driver": Local(), "another driver": other()} {
		for _, o := range []client.Object{volume(d), snapshot(d)} {
			server := lagging.New(t)
			err := d.View(older{server.Client()}).Create(t.Context(), o)
			if own := d.Name == Local().Name; errors.Is(err, ErrForeign) == own || !own && err == nil {
				t.Errorf("%s made %T: %v", name, o, err)
			}
			err = server.Live().Get(t.Context(), client.ObjectKeyFromObject(o), o)
			if own := d.Name == Local().Name; apierrors.IsNotFound(err) == own {
				t.Errorf("%s: %T is there: %v", name, o, err)
			}
		}
	}
}

func TestAGuardRefusesTheObjectsOfOtherDriversAndMakesItsOwn(t *testing.T) {
	server := both(t)
	for name, pair := range drivers() {
		c := pair[0].Guard(server.Client())
		for _, o := range []client.Object{volume(pair[1]), snapshot(pair[1])} {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !errors.Is(err, ErrForeign) || apierrors.IsNotFound(err) {
				t.Errorf("%s: the other one's %T: %v", name, o, err)
			}
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(volume(pair[0])), &v1alpha1.Volume{}); err != nil {
			t.Errorf("%s: its volume: %v", name, err)
		}
		listed(t, name, c, pair[0])
		made := volume(pair[0])
		made.Name += "-2"
		if err := pair[0].Guard(lagging.New(t).Client()).Create(t.Context(), made); err != nil || !pair[0].Owns(made) {
			t.Errorf("%s made a volume of %s: %v", name, made.DriverName(), err)
		}
	}
}

func TestObjectsThatAreNoDriversPass(t *testing.T) {
	node := &corev1.Node{}
	node.Name = "n"
	server := lagging.New(t, node)
	if err := other().View(server.Client()).Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); err != nil {
		t.Error(err)
	}
	var nodes corev1.NodeList
	if err := other().Live(server.Live()).List(t.Context(), &nodes); err != nil || len(nodes.Items) != 1 {
		t.Errorf("%d nodes, %v", len(nodes.Items), err)
	}
}

func TestTheDriverOfSharedDisksHasVolumesWithEpochs(t *testing.T) {
	d := Disk()
	if d.Name == Local().Name || !d.Kind.Traits().Owned || Local().Kind.Traits().Owned {
		t.Errorf("%s has volumes of kind %v, and the local driver of kind %v", d.Name, d.Kind, Local().Kind)
	}
	for mode, served := range map[corev1.PersistentVolumeAccessMode]bool{
		corev1.ReadWriteOnce: true, corev1.ReadWriteOncePod: true, corev1.ReadWriteMany: true, corev1.ReadOnlyMany: false,
	} {
		if refusal := d.Supports(mode); (refusal == "") != served {
			t.Errorf("%s: %q", mode, refusal)
		}
	}
	if d.Inline || d.Capacity {
		t.Errorf("inline volumes %v, capacity of nodes %v: a shared disk is on no node", d.Inline, d.Capacity)
	}
}

func TestAFlagNamesADriver(t *testing.T) {
	for short, want := range map[string]string{"local": "local.berth.dev", "disk": "disk.berth.dev", "": "", "disk.berth.dev": ""} {
		d, err := Named(short)
		if d.Name != want || (err == nil) != (want != "") {
			t.Errorf("%q names %q, %v", short, d.Name, err)
		}
	}
	if Local().Controllers == Disk().Controllers {
		t.Error("the controllers of two drivers elect one leader")
	}
}

func TestAPersistentVolumeFollowsTheLabelWhereTheVolumeMoves(t *testing.T) {
	if Local().Affinity("pvc-1") != nil {
		t.Error("a local volume moves")
	}
	terms := Disk().Affinity("pvc-1").Required.NodeSelectorTerms
	want := corev1.NodeSelectorRequirement{Key: "berth.node-restriction.kubernetes.io/pvc-1", Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}
	if len(terms) != 1 || len(terms[0].MatchExpressions) != 1 || !reflect.DeepEqual(terms[0].MatchExpressions[0], want) {
		t.Errorf("got %+v", terms)
	}
}
