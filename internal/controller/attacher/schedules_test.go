package attacher_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simcloud"
)

var (
	schedules = flag.Int("schedules", 40, "how many random schedules are played")
	from      = flag.Uint64("from", 1, "the seed of the first schedule")
)

// player plays one schedule: nodes that want disks and do not want them any more, and all that goes wrong.
type player struct {
	*site
	random *rand.Rand
	disks  []shared.Disk
	// wants are the disks that each node wants, and held those that it uses, because it has seen them attached.
	wants, held map[string]bool
	// silent: an operation has said that it succeeded, and had no effect.
	silent bool
	calm   bool
}

func TestWhatIsAttachedIsWhatNodesWant(t *testing.T) {
	for seed := *from; seed < *from+uint64(max(0, *schedules)); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := &player{
				site:   newSite(t, simcloud.Config{Lag: 2 * time.Second, Appear: time.Second, Slots: 3}, "a", "b", "c"),
				random: rand.New(rand.NewPCG(seed, 0)), wants: map[string]bool{}, held: map[string]bool{},
			}
			for i := range 4 {
				p.disks = append(p.disks, p.disk(fmt.Sprint(i), 2))
			}
			p.cloud.Faults().Fail(func(string, string, bool) error {
				if !p.calm && p.random.IntN(6) == 0 {
					return errTimedOut
				}
				return nil
			})
			for range 150 {
				p.step()
			}
			p.end()
		})
	}
}

func (p *player) step() {
	p.t.Helper()
	node, d := p.names[p.random.IntN(len(p.names))], p.disks[p.random.IntN(len(p.disks))]
	switch n := p.random.IntN(40); {
	case n < 4:
		p.want(node, d)
	case n == 4:
		p.restart()
	case n == 5:
		p.cloud.Faults().Throttle(time.Duration(p.random.IntN(20)) * time.Second)
	case n == 6:
		p.cloud.Faults().Delay(time.Duration(p.random.IntN(60)) * time.Second)
	case n == 7:
		p.cloud.Faults().Spoil(simcloud.Spoil{Err: errTimedOut, Disk: d.Handle, Happens: p.random.IntN(2) == 0})
	case n == 8 && !p.silent:
		p.silent = true // a second one in a row could not be told from a detach
		p.cloud.Faults().Spoil(simcloud.Spoil{Silent: true})
	case n < 20:
		p.clock.Step(time.Duration(p.random.IntN(8000)) * time.Millisecond)
	case n < 30:
		if _, err := p.controller.Carry(p.t.Context(), node); err != nil {
			p.t.Fatal(err)
		}
	default:
		p.act(node, d)
	}
	p.judge()
}

func at(node string, d shared.Disk) string { return node + " " + d.Volume }

// want lets a node change its mind, as long as the disk has shares and the machine slots.
func (p *player) want(node string, d shared.Disk) {
	if p.wants[at(node, d)] {
		delete(p.wants, at(node, d))
		return
	}
	shares, slots := 0, 0
	for _, n := range p.names {
		if p.wants[at(n, d)] {
			shares++
		}
	}
	for _, other := range p.disks {
		if p.wants[at(node, other)] {
			slots++
		}
	}
	if shares < 2 && slots < 3 {
		p.wants[at(node, d)] = true
	}
}

// act does what the rules of a node do next about a disk.
func (p *player) act(node string, d shared.Disk) {
	p.t.Helper()
	link := p.looks(node, d).Link
	switch wanted := p.wants[at(node, d)]; {
	case link == ownership.Attached && wanted:
		p.held[at(node, d)] = true
	case link == ownership.Detached && wanted:
		p.order(node, d, ownership.ToAttach)
	case !wanted && link != ownership.Detached, link == ownership.AttachFailed:
		delete(p.held, at(node, d))
		p.order(node, d, ownership.ToDetach)
	}
}

// judge compares what nodes use with the truth: no disk is taken away under its node.
func (p *player) judge() {
	p.t.Helper()
	for _, node := range p.names {
		for _, d := range p.disks {
			if p.held[at(node, d)] && p.looks(node, d).Link != ownership.Attached {
				p.t.Fatalf("disk %s was taken from node %s, which uses it", d.Volume, node)
			}
		}
	}
}

// end lets nothing go wrong any more. Then every node gets what it wants, and nothing else stays attached.
func (p *player) end() {
	p.t.Helper()
	p.calm = true
	p.cloud.Faults().Delay(0)
	for range 20 {
		for _, node := range p.names {
			for _, d := range p.disks {
				p.act(node, d)
			}
		}
		p.settle()
		p.clock.Step(time.Minute)
	}
	for _, d := range p.disks {
		var want []string
		for _, node := range p.names {
			if p.wants[at(node, d)] {
				want = append(want, node)
			}
		}
		p.at(d, want...)
	}
}
