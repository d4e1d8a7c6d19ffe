package shell

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"berth.dev/berth/internal/controller/cut"
	"berth.dev/berth/internal/controller/oversight"
	"berth.dev/berth/internal/controller/places"
	"berth.dev/berth/internal/ownership"
)

// controller is a life of a controller of the Deployment, as internal/controller puts it together: oversight
// with its watches, queue and workers, and places.
type controller struct {
	p      *process
	nth    int
	caches *caches
}

// controls begins a controller on a machine.
func (w *world) controls(nth int, on *machine) {
	p := on.begins("controller")
	c := &controller{p: p, nth: nth, caches: newCaches(p, cut.Foreign(w.driver, true))}
	cached, live := &caller{p: p, caches: c.caches}, &caller{p: p}
	known := places.New(w.driver, clock.RealClock{})
	if err := known.Listen(p.ctx, c.caches); err != nil {
		w.fail("places: %v", err)
	}
	r := w.mistake.controller.of(p, &oversight.Reconciler{
		Client: w.driver.View(cached), Live: w.driver.Live(live),
		Contact: &oversight.Contact{Leases: leases{live}, Namespace: namespace, Clock: clock.RealClock{}, Log: logr.Discard()},
		Peers:   peers{p}, Witnesses: witnesses{p}, Places: known,
		Leads: func() bool { return nth == 0 }, Clock: clock.RealClock{}, Rules: ownership.OverseeRules, Instance: p.name,
		FreshID: p.freshID,
	})
	m := &managed{c: c}
	if err := r.SetupWithManager(m, ticking{p: p}); err != nil {
		w.fail("oversight: %v", err)
	}
	w.locked(func() { w.controllers[nth] = c })
	for _, part := range m.parts {
		go func() { _ = part.Start(p.ctx) }()
	}
}

// managed is the manager of a controller's process.
type managed struct {
	manager.Manager
	c     *controller
	parts []manager.Runnable
}

func (m *managed) Add(part manager.Runnable) error {
	m.parts = append(m.parts, part)
	return nil
}
func (m *managed) GetCache() cache.Cache          { return m.c.caches }
func (m *managed) GetScheme() *runtime.Scheme     { return scheme }
func (m *managed) GetRESTMapper() meta.RESTMapper { return nil }
func (m *managed) GetLogger() logr.Logger         { return logr.Discard() }
func (m *managed) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true), RecoverPanic: new(false)}
}

// witnesses say which nodes they reach, as their beats told them.
type witnesses struct{ p *process }

// Witnesses implements oversight.Witnesses.
func (x witnesses) Witnesses(_ context.Context, suspect string) (votes []ownership.Witness) {
	w := x.p.w
	s := w.machine(suspect)
	if s == nil {
		return nil
	}
	for _, m := range w.machines {
		switch {
		case m == x.p.m && m != s:
			votes = append(votes, ownership.Witness{Name: x.p.name, Alive: s.answering(m) != nil})
		case m != s && m.answering(x.p.m) != nil:
			votes = append(votes, ownership.Witness{Name: m.name, Alive: s.answering(m) != nil})
		}
	}
	return votes
}

// replaced begins controllers anew that have ended, on machines that run.
func (w *world) replaced() {
	for nth, c := range w.controllers {
		if c != nil && !c.p.isDead() {
			continue
		}
		first := nth
		if time.Since(w.began) > 0 {
			d := rolled(w.seed, uint64(time.Since(w.began)), fmt.Sprint("controller ", nth))
			first = d.below(len(w.machines))
		}
		if on := w.machines[first%len(w.machines)]; on.runs() {
			w.controls(nth, on)
		}
	}
}
