package peer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/replicate/cert"
)

// now is the time by which certificates are judged.
var now = time.Unix(1.8e9, 0)

// network joins nodes by connections in memory, on the virtual clock of synctest. They have buffers as those of
// TCP have: the farewell of a TLS connection, which net/http sends with its lock held, must not wait for a reader.
type network struct {
	t     *testing.T
	ca    *x509.Certificate
	key   *ecdsa.PrivateKey
	roots *x509.CertPool

	mu    sync.Mutex
	at    map[string]door
	cut   map[[2]string]bool // from, to
	dials map[string]int     // to
}

// door is where a node listens.
type door struct{ *bufconn.Listener }

func (d door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	return connected(c), err
}

// connection goes on after a read that took too long, as one of TCP does: TLS takes the error of bufconn for the
// connection's end. And a deadline that was taken back is none. The timer of bufconn may have begun by then, and
// the next read fails.
type connection struct {
	net.Conn
	mu     *sync.Mutex
	readBy *time.Time
}

func connected(c net.Conn) connection { return connection{c, &sync.Mutex{}, &time.Time{}} }

func (c connection) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.readBy = t
	return c.Conn.SetReadDeadline(t)
}

// early tells whether a read that took too long had time left, and gives it that time again.
func (c connection) early() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	early := c.readBy.IsZero() || time.Now().Before(*c.readBy)
	return early && c.Conn.SetReadDeadline(*c.readBy) == nil
}

func (c connection) Read(into []byte) (int, error) {
	for {
		n, err := c.Conn.Read(into)
		switch late, ok := err.(net.Error); { //nolint:errorlint // never wrapped
		case !ok || !late.Timeout():
			return n, err
		case !c.early():
			return n, os.ErrDeadlineExceeded
		}
	}
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t, roots: x509.NewCertPool(), at: map[string]door{}, cut: map[[2]string]bool{}, dials: map[string]int{}}
	n.ca, n.key = n.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	n.roots.AddCert(n.ca)
	return n
}

func (n *network) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	n.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		n.t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), now.Add(-time.Hour), now.Add(time.Hour)
	parent, by := n.ca, n.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		n.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		n.t.Fatal(err)
	}
	return leaf, key
}

type proofs struct {
	own   *tls.Certificate
	roots *x509.CertPool
}

func (p proofs) Current() *tls.Certificate      { return p.own }
func (p proofs) Roots() (*x509.CertPool, error) { return p.roots, nil }

// identity of a node or of the controllers.
func (n *network) identity(node string) cert.Identity {
	leaf, key := n.sign(&x509.Certificate{DNSNames: []string{cert.Name(node)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}})
	return cert.Identity{Node: node, Now: func() time.Time { return now },
		Source: proofs{own: &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, roots: n.roots}}
}

// client asks as a node or as the controllers.
func (n *network) client(as string) *Client {
	c := NewClient(n.identity(as), func(_ context.Context, node string) (string, error) { return node, nil }, funcr.New(func(_, args string) { n.t.Log(args) }, funcr.Options{Verbosity: 1}))
	c.connect = func(ctx context.Context, _, to string) (net.Conn, error) {
		n.mu.Lock()
		d, cut := n.at[to], n.cut[[2]string{as, to}]
		n.dials[to]++
		n.mu.Unlock()
		if d.Listener == nil || cut {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		c, err := d.DialContext(ctx)
		return connected(c), err
	}
	return c
}

// copies are those of one node: of the volume v, of which the node "stranger" may not know.
type copies struct {
	of   string
	hang bool
}

func (c copies) Peer(ctx context.Context, volume, asker string) (ownership.Peer, bool, error) {
	switch {
	case c.hang:
		<-ctx.Done()
		return ownership.Peer{}, false, ctx.Err()
	case volume != "v":
		return ownership.Peer{}, false, errors.New("the pool does not answer")
	}
	point := lineage.Point{Epoch: lineage.Epoch{Number: 2, ID: "id"}, Seq: 3}
	return ownership.Peer{Node: "another", Copy: ownership.Copy{Exists: true, Points: []lineage.Point{point}}, Confirmed: asker == "alpha", Age: time.Minute},
		asker != "stranger", nil
}

// serve lets a node answer, under the name at which it is found.
func (n *network) serve(ctx context.Context, at, as string, change func(*Server)) {
	d := door{bufconn.Listen(64 << 10)}
	n.mu.Lock()
	n.at[at] = d
	n.mu.Unlock()
	s := &Server{Identity: n.identity(as), Copies: copies{of: as}, Contact: func() time.Duration { return 17 * time.Second },
		Reach: n.client(as).Alive, Clock: clock.RealClock{}, Log: logr.Discard()}
	if change != nil {
		change(s)
	}
	go func() { _ = s.Serve(ctx, d) }()
}

// plays runs a story on a network.
func plays(t *testing.T, story func(ctx context.Context, n *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		story(ctx, newNetwork(t))
		cancel()
		time.Sleep(5 * time.Minute) //nolint:forbidigo // virtual time, for connections to end
	})
}

func nodesOf(peers []ownership.Peer) (out []string) {
	for _, p := range peers {
		out = append(out, p.Node)
	}
	slices.Sort(out)
	return out
}

func TestANodeAnswersForItsCopyAndUnderTheNameInItsCertificate(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "alpha", "alpha", nil)
		n.serve(ctx, "beta", "beta", nil)
		peers := n.client("alpha").Ask(ctx, "v", []string{"beta"})
		if len(peers) != 1 || peers[0].Node != "beta" || !peers[0].Confirmed || peers[0].Age != time.Minute || peers[0].Copy.Tip().Seq != 3 {
			t.Errorf("beta answers %+v", peers)
		}
		if peers := n.client(cert.Controllers).Ask(ctx, "v", []string{"alpha", "beta", "beta"}); !slices.Equal(nodesOf(peers), []string{"alpha", "beta"}) || peers[0].Confirmed {
			t.Errorf("a controller is answered %+v", peers)
		}
		if c := n.client("beta").Contacts(ctx, []string{"alpha", "away"}); len(c) != 1 || c[0] != (ownership.PeerContact{Node: "alpha", SinceRenewal: 17 * time.Second}) {
			t.Errorf("the guard of alpha answers %+v", c)
		}
	})
}

func TestWhoDoesNotAnswerIsNotListedAndDelaysNoOther(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "alpha", "alpha", nil)
		n.serve(ctx, "hangs", "hangs", func(s *Server) { s.Copies = copies{hang: true} })
		n.serve(ctx, "liar", "beta", nil)
		n.serve(ctx, "guard", "guard", func(s *Server) { s.Copies = nil })
		begun := time.Now()
		got := nodesOf(n.client("beta").Ask(ctx, "v", []string{"hangs", "away", "liar", "guard", "alpha", "no/name", ""}))
		if !slices.Equal(got, []string{"alpha"}) {
			t.Errorf("listed are %q", got)
		}
		if took := time.Since(begun); took > askWithin {
			t.Errorf("all together took %v", took)
		}
		if got := n.client("stranger").Ask(ctx, "v", []string{"alpha"}); len(got) > 0 {
			t.Errorf("a node without a replica learns %+v", got)
		}
		if got := n.client("beta").Ask(ctx, "another", []string{"alpha"}); len(got) > 0 {
			t.Errorf("an error is the answer %+v", got)
		}
	})
}

func TestACertificateOfAnotherAuthorityIsNone(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "alpha", "alpha", nil)
		other := newNetwork(t)
		other.at = n.at
		if other.client("beta").Alive(ctx, "alpha") {
			t.Error("a node of another cluster is answered")
		}
		mixed := other.client("beta") // it trusts this cluster, and shows a certificate of the other
		source := mixed.identity.Source.(proofs)
		source.roots = n.roots
		mixed.identity.Source = source
		if mixed.Alive(ctx, "alpha") {
			t.Error("a stranger's certificate is believed")
		}
		if !n.client("beta").Alive(ctx, "alpha") {
			t.Error("a node of this cluster is not answered")
		}
	})
}

func TestOnlyControllersProbeAndFollowBeats(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "alpha", "alpha", nil)
		for _, path := range []string{pathProbe, pathBeats} {
			if r, err := n.client("beta").send(ctx, "alpha", path, nil); err == nil {
				_ = r.Body.Close()
				t.Errorf("a node may ask for %s", path)
			}
		}
	})
}

func TestAPeerWithTooManyConnectionsHarmsNoOther(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "alpha", "alpha", nil)
		var kept []*Client
		refused := 0
		for range maxOfPeer + 3 { // each client has a connection of its own, which stays open
			c := n.client("greedy")
			kept = append(kept, c)
			if err := c.get(ctx, "alpha", pathAlive, nil, &struct{}{}); err != nil {
				refused++
				before := n.called("alpha")
				if again := c.get(ctx, "alpha", pathAlive, nil, &struct{}{}); again == nil || n.called("alpha") != before+1 {
					t.Errorf("it keeps the connection, and asks on it: %v", again)
				}
				if !strings.Contains(err.Error(), `answers 429: "you have too many connections`) {
					t.Error(err)
				}
			}
		}
		if refused != 3 {
			t.Errorf("%d connections were refused", refused)
		}
		if !n.client("beta").Alive(ctx, "alpha") {
			t.Error("another node is not answered")
		}
		kept[0].Close() // another one may come, and no more
		synctest.Wait()
		for _, answered := range []bool{true, false} {
			c := n.client("greedy")
			if kept = append(kept, c); c.Alive(ctx, "alpha") != answered {
				t.Errorf("after one of them has ended, another is answered: %v", !answered)
			}
		}
		for _, c := range kept {
			c.Close()
		}
		synctest.Wait()
		if !n.client("greedy").Alive(ctx, "alpha") {
			t.Error("connections that ended are still counted")
		}
	})
}

func TestAConnectionThatSaysNothingEnds(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "alpha", "alpha", nil)
		conn, err := n.client("stranger").connect(ctx, "", "alpha")
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := conn.Read(make([]byte, 1)); err == nil || time.Since(begun) > handshakeWithin+time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}
