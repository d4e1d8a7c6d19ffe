package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/decide"
	contract "berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/guard/watchdog"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/peer/address"
	"berth.dev/berth/internal/replicate/cert/issue"
)

func TestAPartForPeersNamesTheFlagThatIsWrong(t *testing.T) {
	for flag, f := range map[string]peerFlags{
		"--peer-pod-ip":      {address: ":1", podIP: "node-1", dir: "/a", authorities: "/b"},
		"--peer-dir":         {address: ":1", podIP: "10.0.0.1", dir: "a", authorities: "/b"},
		"--peer-authorities": {address: ":1", podIP: "10.0.0.1", dir: "/a"},
	} {
		if err := f.complete(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestWithoutAnAddressNothingIsOpenedAndNothingIsNeeded(t *testing.T) {
	var f peerFlags
	if err := f.complete(); err != nil {
		t.Error(err)
	}
	a, err := f.openAgent(t.Context(), nil, "n1", "ns")
	if a != nil || err != nil {
		t.Errorf("an agent has %v, %v", a, err)
	}
	g := f.openGuard(t.Context(), nil, "n1", address.Leases{}, t.TempDir())
	if g != nil {
		t.Errorf("a guard has %v", g)
	}
	if err := errors.Join(a.run(t.Context()), a.close(), g.close()); err != nil {
		t.Error(err)
	}
	g.run(t.Context(), nil)
}

// away is an API server that does not answer.
func away(t *testing.T) *rest.Config {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	return &rest.Config{Host: "http://" + l.Addr().String()}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// island is a cluster whose API server is away: its nodes have their certificates from before.
type island struct {
	*testing.T
	authorities issue.Authorities
	published   string
	config      *rest.Config
}

func newIsland(t *testing.T) *island {
	t.Helper()
	i := &island{T: t, config: away(t), published: filepath.Join(t.TempDir(), "ca.crt")}
	i.authorities = i.authority(nil)
	i.publish(i.authorities)
	return i
}

// authority adds an authority to others, as a controller does when they are old.
func (i *island) authority(others issue.Authorities) issue.Authorities {
	i.Helper()
	made, _, err := issue.Authorities(nil).Next(time.Now(), rand.Reader)
	must(i.T, err)
	return append(others, made...)
}

func (i *island) publish(a issue.Authorities) {
	i.Helper()
	must(i.T, os.WriteFile(i.published+".next", a.Roots(), 0o600))
	must(i.T, os.Rename(i.published+".next", i.published))
}

// flags are those of a node that has a certificate of an authority.
func (i *island) flags(node, process string, by issue.Authority) peerFlags {
	i.Helper()
	f := peerFlags{address: "127.0.0.1:0", podIP: "127.0.0.1", dir: filepath.Join(i.TempDir(), "keys"), authorities: i.published}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(i.T, err)
	decision := issue.Answer{Decision: decide.Decision{Verb: issue.Sign}, Node: node, Request: &x509.CertificateRequest{PublicKey: key.Public()}}
	text, err := by.Sign(decision, time.Now(), rand.Reader)
	must(i.T, err)
	der, err := x509.MarshalECPrivateKey(key)
	must(i.T, err)
	kept, err := issue.NewKept(f.dir, process, node, f.roots, logr.Discard())
	must(i.T, err)
	_, err = kept.Update(text, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	must(i.T, err)
	return f
}

// guard runs the part of a node's guard until the test ends. It finds others by the book that the guard before it has
// left.
func (i *island) guard(node string, by issue.Authority, book map[string]string, silent time.Duration) *guardPeers {
	i.Helper()
	dir := i.TempDir()
	text, err := json.Marshal(book)
	must(i.T, err)
	must(i.T, os.WriteFile(filepath.Join(dir, "addresses.json"), text, 0o600))
	f := i.flags(node, "guard", by)
	c, err := clusterClient(i.config)
	must(i.T, err)
	g := f.openGuard(i.Context(), i.config, node, address.Leases{Client: c, Namespace: "ns", Prefix: "berth-guard-"}, dir)
	if g == nil {
		i.Fatal("the guard has no part for peers")
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(i.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.run(ctx, func() time.Duration { return silent })
	}()
	i.Cleanup(func() {
		cancel()
		<-done
	})
	return g
}

func TestGuardsAskEachOtherWhileTheAPIServerIsAway(t *testing.T) {
	i := newIsland(t)
	beta := i.guard("beta", i.authorities[0], nil, 17*time.Second)
	liar := i.guard("liar", i.authorities[0], nil, time.Hour)
	stranger := i.authority(nil)
	foreign := newIsland(t)
	gamma := foreign.guard("gamma", stranger[0], nil, time.Hour)
	alpha := i.guard("alpha", i.authorities[0], map[string]string{
		"beta": beta.announced, "delta": liar.announced, "gamma": gamma.announced, "gone": "127.0.0.1:1",
	}, 0)
	got := alpha.client.Contacts(t.Context(), []string{"beta", "delta", "gamma", "gone", "unknown"})
	if len(got) != 1 || got[0].Node != "beta" || got[0].SinceRenewal != 17*time.Second {
		t.Errorf("alpha learns %+v", got)
	}
}

func TestAGuardThatIsAskedDuringARotationTrustsBothAuthorities(t *testing.T) {
	i := newIsland(t)
	beta := i.guard("beta", i.authorities[0], nil, time.Second)
	both := i.authority(i.authorities)
	i.publish(both) // while beta runs
	alpha := i.guard("alpha", both[1], map[string]string{"beta": beta.announced}, 0)
	if got := alpha.client.Contacts(t.Context(), []string{"beta"}); len(got) != 1 {
		t.Error("a certificate of the successor is not trusted")
	}
	i.publish(both[1:])
	alpha.client.Close()
	if got := alpha.client.Contacts(t.Context(), []string{"beta"}); len(got) != 0 {
		t.Error("a certificate of an authority that has gone is trusted")
	}
}

// silence is a lease whose API server does not answer.
type silence struct{}

func (silence) Renew(context.Context, func([]string) (contract.Renewal, error)) error {
	return errors.New("the API server is away")
}

// still holds no volume.
type still struct{}

func (still) Stop(contract.Holding) error  { return nil }
func (still) Free(contract.Holding) error  { return nil }
func (still) Allow(contract.Holding) error { return nil }

func TestTheWritersOfANodeGoOnOnlyWhileAMajorityIsWithoutTheAPIServer(t *testing.T) {
	for name, test := range map[string]struct {
		// unheard is since when alpha, and silent since when the others have had no answer to a renewal.
		unheard, silent time.Duration
		met             func(keep.State) bool
	}{
		"the others are without it, too": {15 * time.Second, 20 * time.Second, func(s keep.State) bool { return s.Exempted > 0 && s.Alike == 3 && !s.Fenced }},
		"the others have an answer":      {18 * time.Second, time.Second, func(s keep.State) bool { return s.Fenced && s.Exempted == 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIsland(t)
			book := map[string]string{}
			for _, node := range []string{"beta", "gamma"} {
				book[node] = i.guard(node, i.authorities[0], nil, test.silent).announced
			}
			alpha := i.guard("alpha", i.authorities[0], book, 0)
			store := keep.File(filepath.Join(t.TempDir(), "state.json"))
			now := func() time.Duration { return keep.Now() + time.Hour } // the machine of the test may have just booted
			must(t, store.Save(keep.State{
				Boot: "boot", Renewed: now() - test.unheard, Sets: [][]string{{"alpha", "beta", "gamma"}},
				Open: []contract.Epoch{{Volume: "v", Epoch: lineage.Epoch{Number: 1, ID: "e"}}},
			}))
			keeper, err := keep.New(keep.Config{
				Boot: "boot", Now: now, Node: "alpha", Lease: silence{}, Peers: alpha.client, Writers: still{}, Store: store,
				Watchdog: watchdog.New(filepath.Join(t.TempDir(), "none")), Clock: clock.RealClock{}, Log: logr.Discard(),
			})
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- keeper.Run(ctx, nil) }()
			var last keep.State
			err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
				last, err = store.Load()
				return test.met(last), err
			})
			cancel()
			if err := errors.Join(err, <-ended); err != nil {
				t.Errorf("%v: the guard keeps %+v", err, last)
			}
		})
	}
}

func TestAnAgentWhoseAddressCannotBeAnnouncedYetAnswersAllTheSame(t *testing.T) {
	i := newIsland(t)
	f := i.flags("alpha", "agent", i.authorities[0])
	a, err := f.openAgent(t.Context(), i.config, "alpha", "ns")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	beta := i.guard("beta", i.authorities[0], map[string]string{"alpha": a.announced}, 0)
	if !beta.client.Alive(t.Context(), "alpha") {
		t.Error("the agent does not answer")
	}
	if got := beta.client.Ask(t.Context(), "v", []string{"alpha"}); len(got) > 0 {
		t.Errorf("an agent that has no copies answers %+v", got)
	}
	cancel()
	if err := errors.Join(<-ended, a.close()); err != nil {
		t.Error(err)
	}
}
