package shell

import (
	"strings"
	"sync"
	"time"
)

// plot waits for effects, and lets their machine sleep, or their process die, right before or after them.
type plot struct {
	w  *world
	mu sync.Mutex
	// waiting are the events that are about an effect that has not come.
	waiting []event
}

func newPlot(w *world) *plot { return &plot{w: w} }

func (l *plot) adds(e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, e)
}

func (l *plot) reaches(p *process, what string) { l.meets(p, what, sleepBefore, dieBefore) }
func (l *plot) passed(p *process, what string)  { l.meets(p, what, sleepAfter, dieAfter) }

func (l *plot) meets(p *process, what string, sleeps, dies fault) {
	if p.kind == "os" || !p.w.troubled() {
		return
	}
	l.mu.Lock()
	var now *event
	for i := range l.waiting {
		e := &l.waiting[i]
		if e.what != sleeps && e.what != dies || !strings.HasPrefix(what, e.effect) {
			continue
		}
		if e.nth--; e.nth < 0 {
			met := *e
			now = &met
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			break
		}
	}
	l.mu.Unlock()
	if now == nil {
		return
	}
	p.w.tells("FAULT", "%s of %s: %v", what, p.name, now)
	if now.what == sleeps {
		p.m.sleeps(false)
		time.AfterFunc(now.lasts, p.m.wakes)
		if now.flag {
			for _, v := range p.w.volumes {
				p.w.moves(v)
			}
		}
		return
	}
	p.killed()
	time.AfterFunc(now.lasts, p.m.restarts)
}

// killed ends a process as a kill does.
func (p *process) killed() {
	switch p.kind {
	case "guard":
		p.m.guard.dies()
	case "agent":
		p.dies()
	case "controller":
		p.dies()
		p.w.count("controllers killed")
	}
}
