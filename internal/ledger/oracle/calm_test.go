package oracle

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"berth.dev/berth/internal/ledger"
)

// calmActs are the acts of a cluster with one scheduler, which has a ledger: pods
// and claims come and go, volumes grow once that was granted, the scheduler dies at
// any point. Nothing else takes space.
var calmActs = []act{
	quiet((*world).claimComes), quiet((*world).claimComes), quiet((*world).claimComes),
	quiet((*world).podComes), quiet((*world).podComes), quiet((*world).podComes),
	(*world).schedules, (*world).schedules, (*world).schedules, (*world).schedules,
	(*world).advances, (*world).advances, (*world).advances, (*world).advances, (*world).advances,
	quiet((*world).agentWorks), quiet((*world).agentReports),
	quiet((*world).podEnds), quiet((*world).claimGoes), quiet((*world).pvGoes), quiet((*world).volumeGoes), quiet((*world).volumeGoes),
	quiet((*world).provisions), quiet((*world).provisions), quiet((*world).claimGrows), quiet((*world).grantedGrows),
	(*world).restarts,
}

// grantedGrows lets a Volume grow if the ledger has set the room aside.
func (w *world) grantedGrows(a, _, _ byte) {
	m := w.schedulers[0].model
	c, found := choose(w.claims, a, func(c *claim) bool { return c.Bound && m.growth["pvc-"+c.UID] == c.Requested })
	if !found {
		return
	}
	v := w.volumes["pvc-"+c.UID]
	w.trace("the Volume %s is to grow to %d", v.Name, c.Requested)
	v.Capacity = c.Requested
	w.emitVolume(v)
}

// refused returns the first replica that a node refused.
func (w *world) refused() error {
	for _, name := range sortedKeys(w.volumes) {
		for _, r := range w.volumes[name].Replicas {
			if r.State == ledger.Refused {
				return fmt.Errorf("the node %s refused %s for want of space", r.Node, name)
			}
		}
	}
	return nil
}

func calm(seed uint64, trace func(string, ...any), count map[string]int) error {
	random := rand.New(rand.NewPCG(seed, 2))
	w := newWorld(1)
	w.calm, w.trace = true, trace
	if err := w.restarts(0, 0, 0); err != nil {
		return err
	}
	for range 150 {
		n := random.Uint64()
		if err := calmActs[n%uint64(len(calmActs))](w, byte(n>>16), byte(n>>24), byte(n>>32)); err != nil {
			return err
		}
		if err := w.catchesUp(w.schedulers[0], byte(n>>40)); err != nil {
			return err
		}
		if err := w.refused(); err != nil {
			return err
		}
	}
	for _, v := range w.volumes {
		count["volumes"]++
		if v.Replicas[0].State == ledger.Ready {
			count["carved"]++
		}
	}
	for _, p := range w.pods {
		if p.Node != "" {
			count["bound"]++
		}
	}
	return nil
}

func TestASchedulerAloneNeverSendsAVolumeToANodeThatRefusesIt(t *testing.T) {
	count, n := map[string]int{}, uint64(150)
	if testing.Short() {
		n = 50
	}
	for seed := range n {
		if err := calm(seed, func(string, ...any) {}, count); err != nil {
			_ = calm(seed, t.Logf, count)
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if count["carved"] < int(n) || count["bound"] < int(n)/2 {
		t.Errorf("in %d sequences only %v: too few to prove anything", n, count)
	}
	t.Logf("%v", count)
}
