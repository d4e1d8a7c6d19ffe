package explore

import "berth.dev/berth/internal/ownership"

// enduring is how many rounds a failover may take while the primary stays dead: in each, every other
// process works until it waits, and five seconds pass.
const enduring = 24

// Endure judges what must happen while a fault lasts. The primary of an open epoch dies and stays
// dead, everything else is well, and its pod is placed on another node: if a fence can be had, the
// pod runs there before long. The world is left as it then is.
func (w *World) Endure() {
	v := w.server.current.volume
	if w.Violation != "" || v == nil || len(v.Writing()) == 0 || v.Deleting || w.truth.restored {
		return
	}
	dead := indexOf(v.Writing()[0])
	if dead < 0 {
		return
	}
	w.story.say("%s dies and stays dead, and all other faults end", names[dead])
	if w.cfg.Many {
		(ending{w}).endureWriters(dead)
		return
	}
	story := w.story
	if !w.verbose {
		w.story = nil
	}
	defer func() { w.story = story }()
	(ending{w}).endFaults()
	w.faults().crash(dead)
	for i := range w.nodes {
		w.faults().unwant(i)
	}
	to := -1
	for round := range enduring {
		if w.Violation != "" || to >= 0 && w.nodes[to].mounted {
			break
		}
		(ending{w}).place(&to)
		for i := range w.cfg.Nodes {
			if i != dead {
				w.faults().evict(i)
				(ending{w}).work(i)
			}
		}
		for c := range w.ctl {
			for range 4 {
				w.overseers().controllerStep(c, 0)
			}
			(ending{w}).agree(c)
		}
		if round == 0 && !(w.restJudge().fenceable(dead) && w.restJudge().survives(dead)) {
			return
		}
		w.tick(ticks[0])
	}
	if w.Violation == "" && to >= 0 && !w.nodes[to].mounted {
		w.fail("endurance: %s is dead, a fence could be had, and the pod on %s has no volume after %d rounds", names[dead], names[to], enduring)
	}
}

// place binds the pod to a node that lives and is counted as ready.
func (w ending) place(to *int) {
	v := w.server.current.volume
	if *to >= 0 {
		if e, ok := v.Replica(names[*to]); ok && !going(e.State) {
			return
		}
		w.faults().unwant(*to)
	}
	*to = -1
	for _, e := range v.Replicas {
		if i := indexOf(e.Node); e.State == ownership.Ready && w.runs(i) {
			w.nodes[i].wanted, *to = true, i
			return
		}
	}
}

// survives tells whether a node that lives holds data from which the volume can go on.
func (w restJudge) survives(dead int) bool {
	v := w.server.current.volume
	if !v.Kind.Traits().Data {
		return true
	}
	for _, e := range v.Replicas {
		i := indexOf(e.Node)
		for _, p := range w.nodes[i].copy.Points {
			if i != dead && !going(e.State) && w.mayGoOn(v, p) {
				return true
			}
		}
	}
	return false
}

// fenceable tells whether anything can prove that the dead node cannot write: a reservation that
// lasts, and a standby to take it, or the self-fence contract with a majority. It is judged while the
// node has just died.
func (w restJudge) fenceable(dead int) bool {
	if w.cfg.Kind.Traits().Reserves {
		return w.cfg.Persistent
	}
	n := &w.nodes[dead]
	present := uint8(1<<w.cfg.Nodes - 1)
	return w.cfg.Watchdog && w.cfg.Nodes > 2 && n.members == present && w.server.current.volume.Primary.Boot == bootNames[n.leased]
}

// away is how many rounds a node may take to unmount a volume while the API server is away.
const away = 12

// EndureAway judges an unmount that the API server does not see: the server is away, everything else is
// well, and the pods end. Before long nothing is mounted, and the last writes are in a snapshot. The
// answer to the kubelet waits until the server is back: see checkUnstaged.
func (w *World) EndureAway() {
	if w.Violation != "" {
		return
	}
	w.story.say("the API server goes away, all other faults end, and the pods end")
	story := w.story
	if !w.verbose {
		w.story = nil
	}
	defer func() { w.story = story }()
	(ending{w}).endFaults()
	w.server.down = true
	for i := range w.nodes {
		w.faults().unwant(i)
	}
	for range away {
		for i := range w.cfg.Nodes {
			(ending{w}).work(i)
		}
		w.tick(ticks[0])
	}
	for i := range w.cfg.Nodes {
		n := &w.nodes[i]
		if n.mounted {
			w.fail("endurance: the API server is away, and %s has not unmounted the volume after %d rounds", names[i], away)
		}
		if n.stopped && n.copy.Dirty && w.cfg.Kind.Traits().Data {
			w.fail("endurance: the API server is away, and %s keeps the last writes in no snapshot after %d rounds", names[i], away)
		}
	}
}
