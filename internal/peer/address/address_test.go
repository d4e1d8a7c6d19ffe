package address

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

const namespace = "berth-system"

func lease(name, address string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if address != "" {
		l.Annotations = map[string]string{v1alpha1.AddressAnnotation: address}
	}
	return l
}

func TestAnAddressIsThatOfAPod(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.2.3:9811": "10.1.2.3:9811", "[fd00::1]:9812": "[fd00::1]:9812",
		"": "", "10.1.2.3": "", "10.1.2.3:0": "", "10.1.2.3:99999": "", "etcd.kube-system:2379": "", "http://10.1.2.3:80": "",
		"127.0.0.1:9811": "", "[::1]:9811": "", "[::ffff:127.0.0.1]:1": "", "169.254.169.254:80": "", "[fe80::1%eth0]:1": "", "224.0.0.1:1": "", "0.0.0.0:1": "",
	} {
		if got, err := Of(lease("berth-agent-n1", text)); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
	}
}

func TestAnAgentAnnouncesItselfInItsOwnLeaseAndIsFoundThere(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	leases := Leases{Client: c, Namespace: namespace, Prefix: v1alpha1.AgentLeasePrefix}
	if err := leases.Announce(t.Context(), c, "n1", "10.1.2.3:9811"); !apierrors.IsNotFound(err) {
		t.Errorf("without a Lease: %v", err)
	}
	own := lease("berth-agent-n1", "")
	own.Spec.HolderIdentity = new("n1")
	if err := c.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := leases.Announce(t.Context(), c, "n1", "10.1.2.3:9811"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := leases.Address(t.Context(), "n1"); err != nil || got != "10.1.2.3:9811" {
		t.Errorf("it is found at %q, %v", got, err)
	}
	var kept coordinationv1.Lease
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(own), &kept); err != nil || *kept.Spec.HolderIdentity != "n1" {
		t.Errorf("the Lease lost what else it says: %+v, %v", kept.Spec, err)
	}
}

func TestAnAddressIsUsedForHalfAMinuteAndOnWhileTheAPIServerIsAway(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	answer, fails, asked := "10.0.0.1:1", error(nil), 0
	r := &Recent{Clock: now, From: func(context.Context, string) (string, error) {
		asked++
		return answer, fails
	}}
	step := func(after time.Duration, wantAddress string, wantAsked int) {
		t.Helper()
		now.SetTime(now.Now().Add(after))
		got, err := r.Address(t.Context(), "n1")
		if got != wantAddress || (err == nil) != (wantAddress != "") || asked != wantAsked {
			t.Errorf("it is found at %q, %v, after %d questions", got, err, asked)
		}
	}
	step(0, "10.0.0.1:1", 1)
	answer = "10.0.0.2:1"
	step(29*time.Second, "10.0.0.1:1", 1)
	step(time.Second, "10.0.0.2:1", 2)
	fails = errors.New("no answer")
	step(time.Hour, "10.0.0.2:1", 3)
	fails = apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "berth-agent-n1")
	step(time.Hour, "", 4)
	fails = errors.New("no answer")
	step(0, "", 5)
}

func TestABookHasTheGuardsAddressesWhileTheAPIServerIsAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "addresses.json")
	away := false
	c := fake.NewClientBuilder().WithObjects(
		lease("berth-guard-n1", "10.0.0.1:9812"), lease("berth-guard-n2", "10.0.0.2:9812"), lease("berth-guard-n3", ""),
		lease("berth-guard-liar", "127.0.0.1:22"), lease("berth-agent-n4", "10.0.0.4:9811"),
	).WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if away {
			return errors.New("the API server does not answer")
		}
		return w.List(ctx, list, opts...)
	}}).Build()
	from := Leases{Client: c, Namespace: namespace, Prefix: v1alpha1.GuardLeasePrefix}
	expect := func(b *Book, want map[string]string) {
		t.Helper()
		for _, node := range []string{"n1", "n2", "n3", "n4", "liar"} {
			if got, err := b.Address(t.Context(), node); got != want[node] || (err == nil) != (want[node] != "") {
				t.Errorf("%s is found at %q, %v", node, got, err)
			}
		}
	}
	both := map[string]string{"n1": "10.0.0.1:9812", "n2": "10.0.0.2:9812"}
	book := OpenBook(path, logr.Discard())
	expect(book, nil)
	if err := book.learn(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	expect(book, both)

	away = true
	next := OpenBook(path, logr.Discard())
	if err := next.learn(t.Context(), from); err == nil {
		t.Error("an API server that is away answers")
	}
	expect(next, both)

	away = false
	if err := c.Delete(t.Context(), lease("berth-guard-n2", "")); err != nil {
		t.Fatal(err)
	}
	if err := next.learn(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	expect(next, map[string]string{"n1": "10.0.0.1:9812"})

	if err := os.WriteFile(path, []byte(`{"n1":`), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(OpenBook(path, logr.Discard()), nil)
}

func TestABookLooksAgainSoonAfterAFailureAndThenOnceAMinute(t *testing.T) {
	path := filepath.Join(t.TempDir(), "addresses.json")
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var lists []time.Duration
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			lists = append(lists, time.Since(begun))
			if len(lists) == 1 {
				return errors.New("the API server does not answer")
			}
			return nil
		}}).Build()
		ctx, cancel := context.WithTimeout(t.Context(), soon+2*look+time.Second)
		defer cancel()
		OpenBook(path, logr.Discard()).Keep(ctx, Leases{Client: c}, clock.RealClock{})
		if want := []time.Duration{0, soon, soon + look, soon + 2*look}; !slices.Equal(lists, want) {
			t.Errorf("it lists at %v, want %v", lists, want)
		}
	})
}
