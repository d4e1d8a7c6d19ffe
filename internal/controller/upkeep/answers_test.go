package upkeep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/driver"
)

var errBroken = errors.New("the API server is broken")

// deaf is a reader that does not answer about the kind of to. If to has a name, it does not
// answer about that object.
type deaf struct {
	client.Reader
	to client.Object
}

func (d deaf) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if reflect.TypeOf(o) == reflect.TypeOf(d.to) && (d.to.GetName() == "" || d.to.GetName() == key.Name) {
		return errBroken
	}
	return d.Reader.Get(ctx, key, o, opts...)
}

func (d deaf) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if fmt.Sprintf("%T", list) == fmt.Sprintf("%TList", d.to) {
		return errBroken
	}
	return d.Reader.List(ctx, list, opts...)
}

// mute is a client whose cache does not answer about one kind.
type mute struct {
	client.Client
	cache deaf
}

func (m mute) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return m.cache.Get(ctx, key, o, opts...)
}

func (m mute) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return m.cache.List(ctx, list, opts...)
}

func TestAReportStaysIfItsNodeCannotBeRead(t *testing.T) {
	s := lagging.New(t, aReport())
	if err := look(t, &StorageNodes{Client: s.Client(), Live: deaf{s.Live(), &corev1.Node{}}}, "n"); !errors.Is(err, errBroken) || !there(t, s, aReport()) {
		t.Errorf("got %v", err)
	}
}

func TestAVolumeStaysIfItsClaimCannotBeRead(t *testing.T) {
	for name, to := range map[string]client.Object{"claim": &corev1.PersistentVolumeClaim{}, "PersistentVolume": &corev1.PersistentVolume{}} {
		t.Run(name, func(t *testing.T) {
			s, r := orphanage(t, unclaimed())
			r.Live = deaf{s.Live(), to}
			if err := look(t, r, "pvc-u"); !errors.Is(err, errBroken) || !there(t, s, unclaimed()) {
				t.Errorf("got %v", err)
			}
			tidy := &Reservations{Driver: driver.Local(), Client: s.Client(), Live: r.Live, Clock: r.Clock, Delay: time.Minute}
			write(t, s, func(*v1alpha1.Volume) {})
			v := unclaimed()
			there(t, s, v)
			v.Annotations = reserved().Annotations
			must(t, s.Others().Update(t.Context(), v))
			if err := look(t, tidy, "pvc-u"); !errors.Is(err, errBroken) || !there(t, s, unclaimed()) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAVolumeStaysIfThePersistentVolumeOfItsClaimCannotBeRead(t *testing.T) {
	s, r := orphanage(t, unclaimed(), bound())
	r.Live = deaf{s.Live(), exporting("theirs")}
	if err := look(t, r, "pvc-u"); !errors.Is(err, errBroken) || !there(t, s, unclaimed()) {
		t.Errorf("got %v", err)
	}
	s = lagging.New(t, reserved(), bound())
	tidy := &Reservations{Driver: driver.Local(), Client: s.Client(), Live: deaf{s.Live(), exporting("theirs")}, Clock: r.Clock}
	if err := look(t, tidy, "pvc-u"); !errors.Is(err, errBroken) || !there(t, s, reserved()) {
		t.Errorf("got %v", err)
	}
}

func TestAVolumeStaysWhereTheCacheDoesNotShowTheVolumeOfItsClaim(t *testing.T) {
	s, r := orphanage(t, unclaimed(), bound())
	s.Hold()
	must(t, s.Others().Create(t.Context(), exporting("theirs")))
	must(t, look(t, r, "pvc-u"))
	if !there(t, s, unclaimed()) {
		t.Error("it is gone")
	}
}

func TestAClaimThatIsNotBoundNeedsNoAnswerAboutPersistentVolumes(t *testing.T) {
	s, r := orphanage(t, unclaimed(), theClaim())
	r.Live = deaf{s.Live(), &corev1.PersistentVolume{}}
	must(t, look(t, r, "pvc-u"))
	if !there(t, s, unclaimed()) {
		t.Error("it is gone")
	}
}

func TestWhereTheCacheDoesNotAnswerNothingIsWritten(t *testing.T) {
	class := &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	for name, test := range map[string]struct {
		to client.Object
		of string
		r  func(c client.Client, claims *Claims) reconcile.Reconciler
	}{
		"Claims cannot read the Volume": {&v1alpha1.Volume{}, "pvc-u", func(c client.Client, claims *Claims) reconcile.Reconciler {
			return &Claims{Driver: driver.Local(), Client: c, Live: claims.Live, Clock: claims.Clock}
		}},
		"Claims cannot read the PersistentVolumes": {&corev1.PersistentVolume{}, "pvc-u", func(c client.Client, claims *Claims) reconcile.Reconciler {
			return &Claims{Driver: driver.Local(), Client: c, Live: claims.Live, Clock: claims.Clock}
		}},
		"Reservations cannot read the Volume": {&v1alpha1.Volume{}, "pvc-u", func(c client.Client, claims *Claims) reconcile.Reconciler {
			return &Reservations{Driver: driver.Local(), Client: c, Live: claims.Live, Clock: claims.Clock}
		}},
		"StorageNodes cannot read the report": {&v1alpha1.StorageNode{}, "n", func(c client.Client, claims *Claims) reconcile.Reconciler {
			return &StorageNodes{Client: c, Live: claims.Live}
		}},
		"Capacities cannot read the report": {&v1alpha1.StorageNode{}, "n", func(c client.Client, _ *Claims) reconcile.Reconciler {
			return &Capacities{Driver: driver.Local(), Client: c, Silence: func(string) (bool, time.Duration) { return true, 0 }}
		}},
		"PoolClasses cannot read the reports": {&v1alpha1.StorageNode{}, "fast", func(c client.Client, _ *Claims) reconcile.Reconciler {
			return &PoolClasses{Client: c}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, claims := orphanage(t, unclaimed(), exporting("theirs"), aReport(), class)
			s.Before = func(w lagging.Write) error { t.Errorf("%s of %T", w.Verb, w.Object); return nil }
			if err := look(t, test.r(mute{s.Client(), deaf{s.Client(), test.to}}, claims), test.of); !errors.Is(err, errBroken) {
				t.Errorf("got %v", err)
			}
		})
	}
}
