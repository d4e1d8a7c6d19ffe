//go:build platform

package takeover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/test/rounds"
	"berth.dev/berth/test/writes"
)

const (
	// takeover is how long another writer may take, and again within which time all must be as before.
	takeover = 3 * time.Minute
	again    = 5 * time.Minute
	// settled is how long each controller has run before a fault: longer than one that has just begun holds the
	// brake, and than it takes to hear of each node.
	settled = 15 * time.Second
)

// The faults: a node alone, and one with a controller on it.
const (
	nodeLost = "node lost"
	bothLost = "node lost, with a controller on it"
)

func TestAnotherNodeTakesTheDiskOfALostNode(t *testing.T) {
	p := newPlayers(t)
	for n := 1; n <= *roundsToPlay; n++ {
		for _, planned := range []bool{true, false} {
			r := p.play(t, n, planned)
			t.Logf("round %d: %s: %v, harm %q, failed %q", n, r.Fault, r.Steps, r.Harm, r.Failed)
			if err := rounds.Append(*results, r); err != nil {
				t.Fatal(err)
			}
			if r.Failed != "" || len(r.Harm) > 0 {
				t.Fatalf("seed %d, round %d: %s %q", *seed, n, r.Failed, r.Harm)
			}
		}
	}
}

func newPlayers(t *testing.T) *players {
	env := apitest.Start(t)
	p := &players{env: env, seen: map[string]*corev1.Node{}, renewals: map[string]int{}, dice: rand.New(rand.NewPCG(*seed, 0))} //nolint:gosec // the dice are to be thrown again
	heard := &rounds.Heard{}
	for i := 1; i <= 3; i++ {
		p.nodes = append(p.nodes, &node{machine: machine{name: fmt.Sprintf("node%d", i), number: i}, env: env, heard: heard, suspect: p.suspects})
	}
	for role, accounts := range map[string][]string{
		"agent": {"agent"}, "guard": {"guard"}, "controller": {"controller"}, "oversight": {"controller"},
		"certificates": {"agent", "guard", "controller"}, "certificates-signer": {"controller"},
	} {
		env.Grant(t, role, accounts...)
	}
	t.Cleanup(func() {
		for _, n := range p.nodes {
			if n.kubelet != nil {
				_, err := n.loses()
				p.say(err)
			}
		}
		p.say(sweep())
	})
	serveCloud(t, p.nodes)
	for i, n := range p.nodes {
		if err := n.boots(t); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			if err := n.controls(t); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.sharedDisk(t)
	p.watch(t)
	// A real scheduler would go on trying, and say so of the pod.
	if err := rounds.Until(t.Context(), again, "the nodes may take volumes", func() bool { return p.ready(t.Context()) && p.overseen(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	if err := p.rests(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := p.makes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rounds.Until(t.Context(), again, "a pod writes, and all nodes can take over", func() bool { return p.whole(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	if err := p.rests(t.Context(), p.primary()); err != nil {
		t.Fatal(err)
	}
	return p
}

// play plays one round, and leaves the cluster as it was, if it can.
func (p *players) play(t *testing.T, n int, planned bool) rounds.Round {
	r, run := rounds.Round{Seed: *seed, Number: n, Fault: nodeLost}, p.run
	switch {
	case planned:
		r.Fault, run = rounds.Planned, p.drains
	case (n+int(*seed))%2 == 0: //nolint:gosec // a parity
		r.Fault = bothLost
	}
	if err := run(t, &r); err != nil {
		r.Failed = err.Error()
	}
	r.Harm = p.harm(&r)
	return r
}

func (p *players) run(t *testing.T, r *rounds.Round) error {
	ctx := t.Context()
	if err := rounds.Until(ctx, again, "a pod writes", func() bool { return p.whole(ctx) }); err != nil {
		return err
	}
	victim := p.primary()
	r.Victim = victim.name
	if err := p.place(t, victim, r.Fault == bothLost); err != nil {
		return err
	}
	if err := rounds.Until(ctx, again, "all nodes can take over", func() bool { return p.whole(ctx) && p.overseen(ctx) }); err != nil {
		return err
	}
	// The fault meets the beats and renewals at any moment between two of them.
	pause := time.NewTimer(time.Duration(p.dice.Int64N(int64(8 * time.Second))))
	defer pause.Stop()
	<-pause.C
	term := victim.heard.Term()
	before, err := p.changes(ctx)
	if err != nil {
		return err
	}
	at, err := p.lose(victim)
	if err != nil {
		return err
	}
	if err := p.succeeds(ctx, r, term, at); err != nil {
		return err
	}
	after, err := p.changes(ctx)
	if err != nil {
		return err
	}
	r.Changes = after.Since(before)
	healed := time.Now()
	if err := victim.boots(t); err != nil {
		return err
	}
	r.Rebooted = true
	if err := rounds.Until(ctx, again, "all nodes can take over again", func() bool { return p.whole(ctx) }); err != nil {
		return err
	}
	r.Back = time.Since(healed).Round(10 * time.Millisecond).Seconds()
	return nil
}

// succeeds waits until a writer after the one of a term has written.
func (p *players) succeeds(ctx context.Context, r *rounds.Round, term int64, began time.Time) error {
	heard := p.nodes[0].heard
	err := rounds.Until(ctx, takeover, "another writer has written", func() bool {
		when, written := heard.After(term)
		if written {
			p.Reach(rounds.Written, when)
		}
		return written
	})
	r.Steps, r.Gap, r.Moved = p.List(), heard.Gap(began).Round(time.Millisecond).Seconds(), err == nil
	return err
}

// lose takes the power of a node.
func (p *players) lose(victim *node) (time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pod == nil {
		return time.Time{}, errors.New("no pod is there")
	}
	p.epoch, p.lost, p.planned, p.old = p.known.Status.Ownership.Epoch.Number, victim.name, false, p.pod.UID
	at, err := victim.loses()
	p.Begin(at)
	return at, err
}

func (p *players) primary() *node {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.nodes {
		if n.name == p.known.Status.Ownership.Primary.Node {
			return n
		}
	}
	return nil
}

// place makes one of the two controllers run on the victim, or none.
func (p *players) place(t *testing.T, victim *node, with bool) error {
	var has, free []*node
	for _, n := range p.nodes {
		switch wrong := n == victim && !with; {
		case n.controller != nil && wrong:
			if err := n.resigns(); err != nil {
				return err
			}
		case n.controller != nil:
			has = append(has, n)
		case n != victim:
			free = append(free, n)
		}
	}
	if with && victim.controller == nil {
		free = append([]*node{victim}, free...)
		if len(has) == 2 {
			if err := has[1].resigns(); err != nil {
				return err
			}
			has = has[:1]
		}
	}
	for _, n := range free[:max(0, 2-len(has))] {
		if err := n.controls(t); err != nil {
			return err
		}
	}
	return nil
}

// overseen tells whether two controllers are ready, and have run for long enough.
func (p *players) overseen(ctx context.Context) bool {
	ready := 0
	for _, n := range p.nodes {
		if n.controller != nil && time.Since(n.since) > settled && answers(ctx, "http://"+n.address()+":8081/readyz") {
			ready++
		}
	}
	return ready == 2
}

func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	a, err := http.DefaultClient.Do(r)
	return err == nil && a.Body.Close() == nil && a.StatusCode == http.StatusOK
}

// whole tells whether a pod writes, and every node has the disk and may take over: its guard is not fenced.
func (p *players) whole(ctx context.Context) bool {
	p.mu.Lock()
	v := p.known
	p.mu.Unlock()
	if v == nil || v.Status.Ownership == nil || v.Status.Ownership.Primary.Phase != v1alpha1.PrimaryActive || len(v.Status.Ownership.Replicas) != len(p.nodes) {
		return false
	}
	for _, r := range v.Status.Ownership.Replicas {
		if r.State != v1alpha1.OwnedReady {
			return false
		}
	}
	return p.ready(ctx) && p.nodes[0].heard.Since(time.Now().Add(-5*time.Second)) >= 5
}

// ready tells whether all guards and agents are.
func (p *players) ready(ctx context.Context) bool {
	for _, n := range p.nodes {
		if n.kubelet == nil || !answers(ctx, "http://"+n.address()+":9810/readyz") || !answers(ctx, "http://"+n.address()+":9813/readyz") {
			return false
		}
	}
	return true
}

// harm reads the file of the disk.
func (p *players) harm(r *rounds.Round) []string {
	acks := p.nodes[0].heard.All()
	r.Acknowledged = len(acks)
	file, err := os.Open(filepath.Join(disk(), "disk"))
	if err != nil {
		return []string{err.Error()}
	}
	defer file.Close()
	v, err := writes.Judge(file, size, acks)
	if err != nil {
		return []string{err.Error()}
	}
	r.Records = v.Records
	return v.Faults
}
