package peer

import (
	"context"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/replicate/cert"
)

func witnessesOf(w []ownership.Witness) map[string]bool {
	out := map[string]bool{}
	for _, x := range w {
		out[x.Name] = x.Alive
	}
	return out
}

func TestWitnessesAreAskedOnlyWhenTheControllersOwnStreamBroke(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		nodes := []string{"alpha", "beta", "gamma"}
		stops := map[string]context.CancelFunc{}
		for _, node := range nodes {
			own, stop := context.WithCancel(ctx)
			stops[node] = stop
			n.serve(own, node, node, nil)
		}
		b := &Beats{Name: "controller-0", Client: n.client(cert.Controllers), Clock: clock.RealClock{}}
		b.Follow(ctx, nodes)
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		n.mu.Lock()
		for node, dials := range n.dials {
			if dials != 1 {
				t.Errorf("in a minute, %s was called %d times", node, dials)
			}
		}
		n.mu.Unlock()
		if got := witnessesOf(b.Witnesses(ctx, "alpha")); len(got) != 1 || !got["controller-0"] {
			t.Errorf("while beats come: %v", got)
		}
		n.mu.Lock()
		n.cut[[2]string{cert.Controllers, "alpha"}] = true
		n.at["alpha"].Close() // and the stream that is there
		n.mu.Unlock()
		stops["alpha"]()
		own, stop := context.WithCancel(ctx)
		n.serve(own, "alpha", "alpha", nil)
		time.Sleep(2 * broken) //nolint:forbidigo // virtual time
		if got := witnessesOf(b.Witnesses(ctx, "alpha")); len(got) != 3 || got["controller-0"] || !got["beta"] || !got["gamma"] {
			t.Errorf("cut off from alpha alone: %v", got)
		}
		n.mu.Lock()
		n.cut[[2]string{"beta", "alpha"}], n.cut[[2]string{"gamma", "alpha"}] = true, true
		n.at["alpha"].Close()
		n.mu.Unlock()
		stop() // and the connections of beta and gamma
		n.serve(ctx, "alpha", "alpha", nil)
		time.Sleep(2 * broken) //nolint:forbidigo // virtual time
		asked := time.Now()
		if got := witnessesOf(b.Witnesses(ctx, "alpha")); len(got) != 3 || got["controller-0"] || got["beta"] || got["gamma"] {
			t.Errorf("no node reaches alpha: %v", got)
		}
		if waited := time.Since(asked); waited > 0 {
			t.Errorf("it took %s to say what others had said", waited)
		}
		b.Follow(ctx, []string{"gamma"})
		if got := witnessesOf(b.Witnesses(ctx, "alpha")); len(got) != 2 {
			t.Errorf("beta is followed no more: %v", got)
		}
	})
}

func TestANodeWhoseGuardAnswersIsAliveWhileItsAgentIsReplaced(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		agent, ends := context.WithCancel(ctx)
		guard, dies := context.WithCancel(ctx)
		n.serve(agent, "alpha", "alpha", nil)
		n.serve(guard, "guard of alpha", "alpha", nil)
		n.serve(ctx, "beta", "beta", func(s *Server) { // each probe takes its whole time
			s.Reach = func(ctx context.Context, _ string) bool { <-ctx.Done(); return false }
		})
		guards := n.client(cert.Controllers)
		guards.address = func(_ context.Context, node string) (string, error) { return "guard of " + node, nil }
		b := &Beats{Name: "controller-0", Client: n.client(cert.Controllers), Guards: guards, Clock: clock.RealClock{}}
		b.Follow(ctx, []string{"alpha", "beta"})
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		if asked := n.called("guard of alpha"); asked != 0 {
			t.Errorf("while beats come, the guard is asked %d times", asked)
		}
		ends()
		n.mu.Lock()
		n.at["alpha"].Close()
		n.mu.Unlock()
		time.Sleep(broken + Beat) //nolint:forbidigo // virtual time
		for range 600 {
			if !b.Alive("alpha") {
				t.Fatal("a node whose guard answers each question is not alive")
			}
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // virtual time
		}
		dies()
		n.mu.Lock()
		n.at["guard of alpha"].Close()
		n.mu.Unlock()
		time.Sleep(2 * broken) //nolint:forbidigo // virtual time
		if b.Alive("alpha") {
			t.Error("a node without agent and guard is alive")
		}
		if got := witnessesOf(b.Witnesses(ctx, "alpha")); len(got) != 1 || got["controller-0"] {
			t.Errorf("a node that does not answer is a witness: %v", got)
		}
	})
}

func TestANodeThatSendsNoBeatsIsNotAliveThoughItsConnectionIs(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "alpha", "alpha", func(s *Server) { s.Clock = frozen{} })
		b := &Beats{Name: "controller-0", Client: n.client(cert.Controllers), Clock: clock.RealClock{}}
		b.Follow(ctx, []string{"alpha"})
		time.Sleep(broken - Beat) //nolint:forbidigo // virtual time
		if !b.Alive("alpha") {
			t.Error("its first beat was not heard")
		}
		n.mu.Lock()
		n.cut[[2]string{cert.Controllers, "alpha"}] = true // a new stream would begin with a beat
		n.mu.Unlock()
		time.Sleep(Beat + Beat/2) //nolint:forbidigo // virtual time
		if b.Alive("alpha") {
			t.Error("it counts as alive")
		}
		n.serve(ctx, "alpha", "alpha", nil) // it beats again
		n.mu.Lock()
		delete(n.cut, [2]string{cert.Controllers, "alpha"})
		n.mu.Unlock()
		time.Sleep(2 * askWithin) //nolint:forbidigo // virtual time
		for range 10 {
			time.Sleep(Beat) //nolint:forbidigo // virtual time
			if !b.Alive("alpha") {
				t.Fatal("no new stream begins")
			}
		}
	})
}

// frozen is a clock that never ticks.
type frozen struct{ clock.RealClock }

func (frozen) NewTicker(time.Duration) clock.Ticker { return clock.RealClock{}.NewTicker(time.Hour) }

// A machine that loses its power closes no connection, and no question to it has an answer.
func TestWhenAStreamBreaksTheOthersHaveSaidAlreadyThatTheyReachTheNodeNoMore(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		cutOff := n.client("beta")
		hangs := func(s *Server) { s.Reach = cutOff.Alive }
		n.serve(ctx, "alpha", "alpha", func(s *Server) { s.Clock = frozen{} }) // one beat, and no other
		n.serve(ctx, "beta", "beta", hangs)
		n.serve(ctx, "gamma", "gamma", hangs)
		n.mu.Lock()
		n.cut[[2]string{"beta", "alpha"}] = true
		n.mu.Unlock()
		guards := n.client(cert.Controllers)
		guards.address = func(context.Context, string) (string, error) { return "nowhere", nil }
		stirred := make(chan struct{}, 1)
		b := &Beats{Name: "controller-0", Client: n.client(cert.Controllers), Guards: guards, Clock: clock.RealClock{}, Stirred: func() {
			select {
			case stirred <- struct{}{}:
			default:
			}
		}}
		began := time.Now()
		b.Follow(ctx, []string{"alpha", "beta", "gamma"})
		time.Sleep(Beat) //nolint:forbidigo // virtual time
		n.mu.Lock()
		n.cut[[2]string{cert.Controllers, "alpha"}] = true // no new stream
		n.mu.Unlock()
		<-stirred
		if took := time.Since(began); took != broken {
			t.Errorf("the nodes are looked at %s after the last beat, and the stream is broken after %s", took, broken)
		}
		if got := witnessesOf(b.Witnesses(ctx, "alpha")); len(got) != 3 || got["controller-0"] || got["beta"] || got["gamma"] {
			t.Errorf("when the stream is broken, the witnesses say %v", got)
		}
	})
}

func TestANodeWhoseBeatsHaveCeasedIsAskedForNothing(t *testing.T) {
	plays(t, func(ctx context.Context, n *network) {
		n.serve(ctx, "alpha", "alpha", func(s *Server) { s.Clock, s.Copies = frozen{}, copies{hang: true} })
		n.serve(ctx, "beta", "beta", nil)
		n.serve(ctx, "gamma", "gamma", nil)
		b := &Beats{Name: "controller-0", Client: n.client(cert.Controllers), Clock: clock.RealClock{}}
		b.Follow(ctx, []string{"alpha", "beta"})
		time.Sleep(Beat) //nolint:forbidigo // virtual time
		ask := func() (nodes []string, took time.Duration) {
			began := time.Now()
			nodes = nodesOf(b.Ask(ctx, "v", []string{"alpha", "beta", "gamma"}))
			return nodes, time.Since(began)
		}
		if nodes, took := ask(); len(nodes) != 2 || took != askWithin {
			t.Errorf("while alpha beats and does not answer, %q answer after %s", nodes, took)
		}
		n.mu.Lock()
		n.cut[[2]string{cert.Controllers, "alpha"}] = true
		n.mu.Unlock()
		time.Sleep(broken) //nolint:forbidigo // virtual time
		if nodes, took := ask(); len(nodes) != 2 || took != 0 {
			t.Errorf("when its beats have ceased, %q answer after %s; gamma is not followed, and asked", nodes, took)
		}
	})
}
