package lvm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
)

// How full a thin pool is changes without any change of its group, and whether it
// works too. The kernel is asked: at every report of LVM, before and after every own
// change, and from time to time.

// thinTarget is the device mapper's name for the target of a thin pool.
const thinTarget = "thin-pool"

var errAsleep = errors.New("LVM activated it and the kernel does not know it")

// kernelStatus asks the kernel for the status of a thin pool; the zero status if it
// is not active.
func (p *Provisioner) kernelStatus(group, thin string) thinStatus {
	mapping := mappingName(group, thin)
	// A pool with volumes has a device of its own below the one that bears its name.
	for _, name := range []string{mapping + "-tpool", mapping} {
		kind, status, err := p.config.Devices.Target(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return thinStatus{failure: "the kernel does not tell how full the thin pool is: " + err.Error()}
		case kind != thinTarget:
			continue
		}
		s, err := parseThinStatus(status)
		if err != nil {
			return thinStatus{failure: err.Error()}
		}
		return s
	}
	return thinStatus{}
}

// look asks the kernel for the status of a group's thin pools and says whether there
// is any news since the last signal.
func (p *Provisioner) look(group string, pools ...string) (news bool) {
	for _, thin := range pools {
		if thin == "" {
			continue
		}
		status := p.kernelStatus(group, thin)
		p.state.onPool(group, thin, func(pool *thinPool) {
			pool.kernel = status
			if status.live() {
				pool.refused = ""
			}
			news = news || status.news(pool.told)
		})
	}
	return news
}

// rouse makes sure that a thin pool is active before it promises more, since the
// kernel knows how full it is only then. roused says that the pool was inactive and is active
// now. The group's lock is held.
func (p *Provisioner) rouse(name, thin string) (roused bool, err error) {
	p.look(name, thin)
	asleep := false
	p.state.with(name, func(g *group) {
		asleep = g != nil && g.trouble(p.config.Now()) == "" && g.pools[thin] != nil && g.pools[thin].asleep()
	})
	if !asleep {
		return false, nil
	}
	lacking := p.provide(poolTarget)
	p.begin(name)
	_, err = p.change(p.config.activateCommand(name, thin))
	p.end(name)
	err = explained(err, lacking)
	p.look(name, thin)
	p.state.onPool(name, thin, func(pool *thinPool) {
		pool.active = err == nil
		if err == nil && pool.asleep() {
			err = errAsleep
		}
	})
	if err != nil {
		p.refuse(name, err, thin)
		return false, fmt.Errorf("%w: activating thin pool %s/%s: %w", provision.ErrUnavailable, name, thin, err)
	}
	return true, nil
}

// refuse notes that thin pools could not be activated, unless they are live all the same.
func (p *Provisioner) refuse(name string, err error, pools ...string) {
	for _, thin := range pools {
		p.state.onPool(name, thin, func(pool *thinPool) {
			if pool.asleep() {
				pool.active, pool.refused = false, refusal(name+"/"+thin, err)
			}
		})
	}
	if len(pools) > 0 {
		p.signal()
	}
}

// refusal says why a thin pool could not be activated, and what may help.
func refusal(pool string, err error) string {
	if errors.Is(err, errNoTarget) {
		return "the thin pool cannot be activated: " + err.Error()
	}
	return "the thin pool cannot be activated (if its check finds damage, repair it: lvconvert --repair " + pool + "): " + err.Error()
}

// rouseRefused tries again to activate what could not be, behind its caller's back: nothing
// new is asked of a pool that has a problem.
func (p *Provisioner) rouseRefused(ctx context.Context) {
	for name, pools := range p.state.thinPools(isRefused) {
		p.tasks.Go(func() {
			unlock, err := p.groups.Lock(ctx, name)
			if err != nil {
				return
			}
			defer unlock()
			for _, thin := range pools {
				if _, err := p.rouse(name, thin); err == nil { // else it is still the pool's problem
					p.signal()
				}
			}
		})
	}
}

// asleep says that the kernel knows nothing of the pool, for it is not active.
func (p *thinPool) asleep() bool { return !p.kernel.live() && p.kernel.failure == "" }

// onPool runs f on a thin pool, unless there is none, under the state's lock.
func (s *state) onPool(name, thin string, f func(*thinPool)) {
	s.with(name, func(g *group) {
		if g != nil && g.pools[thin] != nil {
			f(g.pools[thin])
		}
	})
}

// watchFill asks the kernel for the status of all thin pools now and then. It asks
// for nothing while there are none.
func (p *Provisioner) watchFill(ctx context.Context) {
	fill := time.NewTicker(p.config.FillInterval)
	defer fill.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-fill.C:
			p.noticeSuspended()
			p.lookAround()
		}
	}
}

// lookAround looks at the thin pools of all groups. One that does not answer holds up
// its own group alone.
func (p *Provisioner) lookAround() {
	for name, pools := range p.state.thinPools(isIdle) {
		if !p.looks.begin(name) {
			continue
		}
		p.tasks.Go(func() {
			defer p.looks.end(name)
			if !p.look(name, pools...) {
				return
			}
			p.state.with(name, func(g *group) {
				if g != nil {
					g.tell()
				}
			})
			p.signal()
		})
	}
}

// thinPools returns the names of some of the thin pools by their groups, in a stable order.
func (s *state) thinPools(some func(*group, *thinPool) bool) map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	byGroup := map[string][]string{}
	for _, g := range s.groups {
		for _, thin := range slices.Sorted(maps.Keys(g.pools)) {
			if some(g, g.pools[thin]) {
				byGroup[g.name] = append(byGroup[g.name], thin)
			}
		}
	}
	return byGroup
}

// isRefused says that a pool could not be activated. isIdle says that no own change is about
// to change its group: while one is, devices come and go, and it looks at its end.
func isRefused(_ *group, p *thinPool) bool { return p.refused != "" }
func isIdle(g *group, _ *thinPool) bool    { return g.busySince.IsZero() }
