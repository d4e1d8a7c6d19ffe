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
	"berth.dev/berth/internal/provision/lvm/group"
)

// The fill of a thin pool changes without any change of its group, and so does whether it works.
// Berth asks the kernel: at every report of LVM, before and after every own change, and from time
// to time.

// thinTarget is the device mapper's name for the target of a thin pool.
const thinTarget = "thin-pool"

var errAsleep = errors.New("LVM activated it and the kernel does not know it")

// kernelStatus asks the kernel for the status of a thin pool; the zero status if it
// is not active.
func kernelStatus(devices Devices, name, thin string) group.ThinStatus {
	mapping := group.MappingName(name, thin)
	// A pool with volumes has a device of its own below the one that bears its name.
	for _, device := range []string{mapping + "-tpool", mapping} {
		kind, status, err := devices.Target(device)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return group.ThinStatus{Failure: "the kernel does not tell how full the thin pool is: " + err.Error()}
		case kind != thinTarget:
			continue
		}
		s, err := group.ParseThinStatus(status)
		if err != nil {
			return group.ThinStatus{Failure: err.Error()}
		}
		return s
	}
	return group.ThinStatus{}
}

// look asks the kernel for the status of a group's thin pools and says whether there
// is any news since the last signal.
func (p *reader) look(name string, pools ...string) (news bool) {
	for _, thin := range pools {
		if thin == "" {
			continue
		}
		status := kernelStatus(p.config.Devices, name, thin)
		p.onPool(name, thin, func(pool *group.ThinPool) {
			pool.Kernel = status
			if status.Live() {
				pool.Refused, pool.Tries = "", group.Tries{}
			}
			news = news || status.News(pool.Told)
		})
	}
	return news
}

// rouse makes sure that a thin pool is active before it promises more, since only then the kernel
// knows its fill. roused says that the pool was inactive and is active now. The caller holds the
// group's lock.
func (p *waker) rouse(name, thin string) (roused bool, err error) {
	p.look(name, thin)
	asleep := false
	p.engine.With(name, func(g *group.Facts) {
		asleep = g != nil && g.Trouble(time.Now()) == "" && g.Pools[thin] != nil && g.Pools[thin].Asleep()
	})
	if !asleep {
		return false, nil
	}
	err = p.activate(name, []string{thin}, thin)
	p.look(name, thin)
	p.onPool(name, thin, func(pool *group.ThinPool) {
		pool.Active = err == nil
		if err == nil && pool.Asleep() {
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
func (p *waker) refuse(name string, err error, pools ...string) {
	for _, thin := range pools {
		p.onPool(name, thin, func(pool *group.ThinPool) {
			if pool.Asleep() {
				pool.Active, pool.Refused = false, refusal(name+"/"+thin, err)
				pool.Tries.Again(err, time.Now(), wipeRetry, refreshInterval)
			}
		})
	}
	if len(pools) > 0 {
		p.engine.Changed.Set()
	}
}

// refusal says why a thin pool could not be activated, and what may help.
func refusal(pool string, err error) string {
	if errors.Is(err, errNoTarget) {
		return "the thin pool cannot be activated: " + err.Error()
	}
	return "the thin pool cannot be activated (if its check finds damage, repair it: lvconvert --repair " + pool + "): " + err.Error()
}

// rouseRefused tries again, in the background, to activate the pools that could not be activated
// and are due. No request does that, since nothing new is placed in a pool that has a problem.
func (p *waker) rouseRefused(ctx context.Context) {
	now := time.Now()
	due := func(_ *group.Facts, pool *group.ThinPool) bool {
		return pool.Refused != "" && !now.Before(pool.Tries.Due)
	}
	for name, pools := range p.thinPools(due) {
		p.engine.Tasks.Go(func() {
			unlock, err := p.engine.UnitLocks.Lock(ctx, name)
			if err != nil {
				return
			}
			defer unlock()
			for _, thin := range pools {
				if _, err := p.rouse(name, thin); err == nil { // else it is still the pool's problem
					p.engine.Changed.Set()
				}
			}
		})
	}
}

// onPool runs f on a thin pool, unless there is none, under the state's lock.
func (p *reader) onPool(name, thin string, f func(*group.ThinPool)) {
	p.state.With(name, func(g *group.Facts) {
		if g != nil && g.Pools[thin] != nil {
			f(g.Pools[thin])
		}
	})
}

// watchFill asks the kernel for the status of all thin pools every fillInterval. It asks for
// nothing while there are none.
func (p *waker) watchFill(ctx context.Context) {
	fill := time.NewTicker(fillInterval)
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

// lookAround looks at the thin pools of all groups. A pool that does not answer holds up only its
// own group.
func (p *waker) lookAround() {
	for name, pools := range p.thinPools(isIdle) {
		if !p.looks.begin(name) {
			continue
		}
		p.engine.Tasks.Go(func() {
			defer p.looks.end(name)
			if !p.look(name, pools...) {
				return
			}
			p.engine.With(name, func(g *group.Facts) {
				if g != nil {
					g.Pools.Tell()
				}
			})
			p.engine.Changed.Set()
		})
	}
}

// thinPools returns the names of some of the thin pools by their groups, in a stable order.
func (p *waker) thinPools(some func(*group.Facts, *group.ThinPool) bool) map[string][]string {
	p.state.Lock()
	defer p.state.Unlock()
	byGroup := map[string][]string{}
	for _, g := range p.state.Units() {
		for _, thin := range slices.Sorted(maps.Keys(g.Pools)) {
			if some(g, g.Pools[thin]) {
				byGroup[g.Name] = append(byGroup[g.Name], thin)
			}
		}
	}
	return byGroup
}

// isIdle says that no own change of a pool's group is under way: during a change devices come and
// go, and the change looks at the pool at its end.
func isIdle(g *group.Facts, _ *group.ThinPool) bool { return !g.Busy() }
