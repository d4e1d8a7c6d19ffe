package owner_test

// plot is a story beside the dice: a machine falls asleep right before an effect, its pod moves to
// another machine, and it wakes when that has had the time to take over.
type plot struct {
	at     int // the machine
	effect string
	nth    int // reaching the effect so often
	lasts  int // so many steps
	begun  bool
}

var plotted = []string{"Read", "Replace", "Store", "Register", "Reserve", "OpenEpoch", "CloseEpoch", "Flush", "Look", "Unmount", "AllClosed"}

func newPlot(s *schedule, nodes int) plot {
	if s.chance(3) {
		return plot{}
	}
	p := plot{at: s.dice.IntN(nodes), effect: plotted[s.dice.IntN(len(plotted))], nth: 1 + s.dice.IntN(6), lasts: 100 + s.dice.IntN(600)}
	if s.chance(3) { // the classic: a takeover that sleeps
		p.effect, p.nth = "Reserve", 1
	}
	return p
}

// reaches tells the plot of an effect that is about to happen.
func (p *plot) reaches(c *cluster, m *machine, effect string) {
	if !c.faulty || p.begun || p.effect != effect || c.machines[p.at] != m || !m.wanted && !c.s.chance(4) {
		return
	}
	if p.nth--; p.nth > 0 {
		return
	}
	p.begun, m.slept = true, true
	for i, other := range c.machines {
		other.wanted = i == (p.at+1)%len(c.machines)
	}
}

// passes lets a step of the plot pass.
func (p *plot) passes(c *cluster) {
	if !p.begun || p.lasts < 0 {
		return
	}
	if p.lasts--; p.lasts < 0 {
		c.machines[p.at].slept = false
	}
}

// sleeps says whether the plot wants the machine to sleep on.
func (p *plot) sleeps(m *machine) bool { return p.begun && p.lasts >= 0 && m.c.machines[p.at] == m }
