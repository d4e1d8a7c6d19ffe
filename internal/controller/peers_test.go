package controller_test

import (
	"context"
	"crypto/x509"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller"
	"berth.dev/berth/internal/controller/certificates"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/peer"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/issue"
)

// streams counts the streams of beats that a node sends now: each has a ticker.
type streams struct {
	clock.RealClock
	mu   sync.Mutex
	open int
}

func (s *streams) count(change int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += change
	return s.open
}

func (s *streams) NewTicker(d time.Duration) clock.Ticker {
	s.count(1)
	return &counted{s.RealClock.NewTicker(d), s}
}

type counted struct {
	clock.Ticker
	of *streams
}

func (c *counted) Stop() {
	c.of.count(-1)
	c.Ticker.Stop()
}

// published are the authorities that the controllers have published.
func (c *cluster) published(t *testing.T) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	await(t, "the controllers' authority", func() bool {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: "berth" + certificates.ConfigMapSuffix}}
		return c.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o) == nil && pool.AppendCertsFromPEM([]byte(o.Data[certificates.RootsKey]))
	})
	return pool
}

// answers runs what an agent answers, with the certificate that the controllers sign for it.
func (c *cluster) answers(t *testing.T, node string) (at string, beats *streams) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c.AgentConfig(t, node))
	if err != nil {
		t.Fatal(err)
	}
	roots := c.published(t)
	own, err := issue.NewOwn(t.Context(), node, clients, issue.Memory{}, func() (*x509.CertPool, error) { return roots, nil })
	if err != nil {
		t.Fatal(err)
	}
	go own.Run(t.Context(), clock.RealClock{})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	beats = &streams{}
	s := &peer.Server{Clock: beats, Log: logr.Discard(), Identity: cert.Identity{Node: node, Now: time.Now, Source: own}}
	go func() { _ = s.Serve(t.Context(), l) }()
	return l.Addr().String(), beats
}

// another makes another controller the leader until the test ends.
func (c *cluster) another(t *testing.T) {
	t.Helper()
	o := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: "berth-controller"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
		},
	}
	if err := client.IgnoreNotFound(c.Client.Delete(t.Context(), o.DeepCopy())); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Client.Delete(context.WithoutCancel(t.Context()), o) })
}

// asController is a connection of the controllers' account with all rights.
func asController(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.Impersonate.UserName = "system:serviceaccount:" + apitest.Namespace + ":" + apitest.ControllerAccount
	c.Impersonate.Groups = []string{"system:masters"}
	return c
}

func TestAControllerThatDoesNotLeadGivesNodesCertificatesAndFollowsThemAsTheyComeAndGo(t *testing.T) {
	c := newCluster(t)
	c.Grant(t, "certificates", "agent")
	c.another(t)
	addresses := map[string]string{}
	var mu sync.Mutex
	controllertest.Start(t, c.Environment, controllertest.WithConfig(asController(c.Config)), controllertest.WithDriver(driver.Disk()), controllertest.WithLeaderElection(), func(o *controller.Options) {
		o.Nodes = controller.Nodes{Installation: "berth", Witness: "one", Address: func(_ context.Context, node string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			return addresses[node], nil
		}}
	})
	var beats []*streams
	var nodes []*controllertest.Node
	for _, name := range []string{"a", "b"} {
		n := c.node(t, name, gi)
		at, s := c.answers(t, n.Name)
		mu.Lock()
		addresses[n.Name] = at
		mu.Unlock()
		nodes, beats = append(nodes, n), append(beats, s)
	}
	for i, n := range nodes {
		await(t, "the stream from "+n.Name, func() bool { return beats[i].count(0) == 1 })
	}
	gone := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: nodes[0].Name}}
	if err := c.Client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the stream from a node that is gone", func() bool { return beats[0].count(0) == 0 })
	if beats[1].count(0) != 1 {
		t.Error("the stream from the other node has ended, too")
	}
}
