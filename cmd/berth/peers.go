package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/peer"
	"berth.dev/berth/internal/peer/address"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/issue"
)

const (
	// agentProcess is the name by which an agent keeps its certificate.
	agentProcess       = "agent"
	defaultAuthorities = "/etc/berth/authorities/ca.crt"
	// reachWithin is how long a node may take to accept a connection for a stream.
	reachWithin = 10 * time.Second
)

// peerFlags say how a process of a node is asked by other nodes and by controllers, and asks them.
type peerFlags struct {
	address, podIP, dir, authorities string
}

func (f *peerFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "peer-address", "", "address on which other nodes and controllers ask this process; empty means that it neither answers nor asks")
	flags.StringVar(&f.podIP, "peer-pod-ip", os.Getenv("POD_IP"), "address that is announced to them: that of the pod; by default $POD_IP")
	flags.StringVar(&f.dir, "peer-dir", "/run/berth-guard/peers", "directory that keeps the certificate of this process and its key through a restart")
	flags.StringVar(&f.authorities, "peer-authorities", defaultAuthorities, "file with the authorities that sign certificates of nodes")
}

// complete checks the flags.
func (f *peerFlags) complete() error {
	if f.address == "" {
		return nil
	}
	if _, err := netip.ParseAddr(f.podIP); err != nil {
		return fmt.Errorf("--peer-pod-ip %q is no address: give it, or set POD_IP to status.podIP", f.podIP)
	}
	for flag, path := range map[string]string{"--peer-dir": f.dir, "--peer-authorities": f.authorities} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%s %q is not an absolute path", flag, path)
		}
	}
	return nil
}

// finder returns the address at which a node may be asked.
type finder func(ctx context.Context, node string) (string, error)

// peers are the part of a process that answers other nodes, and asks them.
type peers struct {
	// client asks. It has no answers before the process has its certificate.
	client *peer.Client
	// server answers what its fields are set for; set them before run.
	server *peer.Server
	// announced is where others ask this process.
	announced string

	own      *issue.Own
	listener net.Listener
	find     finder
}

// open prepares the part of a process of this name on a node, or returns nil if no address is given. ctx may
// end before what runs.
func (f *peerFlags) open(ctx context.Context, config *rest.Config, node, process string, find finder) (*peers, error) {
	if f.address == "" {
		return nil, nil //nolint:nilnil // no part is no error
	}
	log := ctrl.Log.WithName("peers")
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the API server: %w", err)
	}
	kept, err := issue.NewKept(f.dir, process, node, f.roots, log)
	if err != nil {
		return nil, err
	}
	own, err := issue.NewOwn(ctx, node, clients, kept, f.roots)
	if err != nil {
		return nil, fmt.Errorf("getting this node's certificate: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.address)
	if err != nil {
		return nil, fmt.Errorf("opening --peer-address: %w", err)
	}
	identity := cert.Identity{Node: node, Source: own, Now: time.Now}
	return &peers{
		client: peer.NewClient(identity, find, log), own: own, listener: listener, announced: f.announced(listener), find: find,
		server: &peer.Server{Identity: identity, Clock: clock.RealClock{}, Log: log},
	}, nil
}

// announced is the pod's address with the port of the listener.
func (f *peerFlags) announced(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(f.podIP, port)
}

func (f *peerFlags) roots() (*x509.CertPool, error) { return issue.ReadRoots(f.authorities) }

// run keeps the certificate valid and answers, until ctx ends.
func (p *peers) run(ctx context.Context) error {
	if p == nil {
		return nil
	}
	go p.own.Run(ctx, p.server.Clock)
	defer p.client.Close()
	return p.server.Serve(ctx, p.listener)
}

// sortStreams returns the listener of those who ask for streams at the port of questions, until ctx ends. It is
// to be called before run.
func (p *peers) sortStreams(ctx context.Context) net.Listener {
	both := peer.Sort(ctx, p.listener, cert.Questions, cert.Stream)
	p.listener = both[0]
	return both[1]
}

// dial opens a connection to a node, at the address that it has announced.
func (p *peers) dial(ctx context.Context, node string) (net.Conn, error) {
	address, err := p.find(ctx, node)
	if err != nil {
		return nil, fmt.Errorf("finding the address of node %s: %w", node, err)
	}
	return (&net.Dialer{Timeout: reachWithin}).DialContext(ctx, "tcp", address)
}

// close lets go of what run has not been called for.
func (p *peers) close() error {
	if p == nil {
		return nil
	}
	return closed(p.listener)
}

// agentPeers is the part of a node's agent: it finds other agents by their Leases, and announces itself in its
// own.
type agentPeers struct {
	*peers
	leases address.Leases
	writer client.Writer
	node   string
}

// openAgent prepares the part of an agent, or returns nil if no address is given.
func (f *peerFlags) openAgent(ctx context.Context, config *rest.Config, node, namespace string) (*agentPeers, error) {
	if f.address == "" {
		return nil, nil //nolint:nilnil // no part is no error
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server: %w", err)
	}
	leases := address.Leases{Client: c, Namespace: namespace, Prefix: v1alpha1.AgentLeasePrefix}
	recent := &address.Recent{From: leases.Address, Clock: clock.RealClock{}}
	p, err := f.open(ctx, config, node, agentProcess, recent.Address)
	if err != nil {
		return nil, err
	}
	p.server.Reach = p.client.Alive
	return &agentPeers{peers: p, leases: leases, writer: c, node: node}, nil
}

// run keeps the address announced, and answers, until ctx ends.
func (a *agentPeers) run(ctx context.Context) error {
	if a == nil {
		return nil
	}
	go a.announce(ctx, ctrl.Log.WithName("peers"))
	return a.peers.run(ctx)
}

// beside runs an agent, and answers until the agent ends.
func (a *agentPeers) beside(ctx context.Context, agent func(context.Context) error) error {
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return a.run(ctx) })
	work.Go(func() error { return agent(ctx) })
	return work.Wait()
}

func (a *agentPeers) close() error {
	if a == nil {
		return nil
	}
	return a.peers.close()
}

// announce writes the address once a minute, since a Lease may be made anew, and soon again after a failure.
func (a *agentPeers) announce(ctx context.Context, log logr.Logger) {
	const soon, later = 5 * time.Second, time.Minute
	for {
		next := later
		if err := a.leases.Announce(ctx, a.writer, a.node, a.announced); err != nil && ctx.Err() == nil {
			log.Info("other nodes do not find this one yet", "why", err.Error())
			next = soon
		}
		timer := clock.RealClock{}.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// guardPeers are the part of a node's guard: it finds other guards by a book that it keeps beside its state.
type guardPeers struct {
	*peers
	book   *address.Book
	leases address.Leases
}

// openGuard prepares the part of a guard, or returns nil. A guard that cannot have it guards all the same, and
// counts itself alone in an outage of the API server: one that did not begin would have the machine reset.
func (f *peerFlags) openGuard(ctx context.Context, config *rest.Config, node string, leases address.Leases, dir string) *guardPeers {
	log := ctrl.Log.WithName("peers")
	book := address.OpenBook(filepath.Join(dir, "addresses.json"), log)
	p, err := f.open(ctx, config, node, "guard", book.Address)
	if err != nil {
		log.Error(err, "this guard asks no other one until it is restarted")
	}
	if p == nil {
		return nil
	}
	return &guardPeers{peers: p, book: book, leases: leases}
}

// run keeps the book, and answers for how long the node has had no answer to a renewal, until ctx ends.
func (g *guardPeers) run(ctx context.Context, contact func() time.Duration) {
	if g == nil {
		return
	}
	g.server.Contact = contact
	go g.book.Keep(ctx, g.leases, clock.RealClock{})
	if err := g.peers.run(ctx); err != nil {
		ctrl.Log.WithName("peers").Error(err, "this guard answers no other one until it is restarted")
	}
}

func (g *guardPeers) close() error {
	if g == nil {
		return nil
	}
	return g.peers.close()
}
