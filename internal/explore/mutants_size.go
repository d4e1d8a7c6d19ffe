package explore

import "berth.dev/berth/internal/ownership"

// growing alters the rule "grow" wherever it stands.
func growing(r *Rules, alter func(nodeRule) nodeRule) {
	r.Stage, r.Tend = r.Stage.Alter("grow", alter), r.Tend.Alter("grow", alter)
}

var sizeMutants = []Mutant{
	{"never-grows", "a replica is made large enough when it is made", func(r *Rules) {
		r.Stage, r.Tend = r.Stage.Without("grow"), r.Tend.Without("grow")
	}},
	{"grows-when-staged", "only a mounted volume needs its room", func(r *Rules) { r.Tend = r.Tend.Without("grow") }},
	{"takes-larger-streams", "a stream has room wherever there is a copy", func(r *Rules) {
		r.Receive = func(c *ownership.Copy, mounted bool, s *ownership.Stream) (bool, ownership.Why) {
			t := *s
			t.Size = 0
			return ownership.Receive(c, mounted, &t)
		}
	}},
	{"grows-to-the-record", "the record knows how large the volume is", func(r *Rules) {
		growing(r, seeing(func(f *ownership.NodeFacts) {
			f.Peers = append([]ownership.Peer(nil), f.Peers...)
			for i := range f.Peers {
				f.Peers[i].Copy.Size = 0
			}
		}))
	}},
	{"shrinks-to-the-record", "a copy is as large as the record says", func(r *Rules) {
		growing(r, func(old nodeRule) nodeRule {
			return func(f *ownership.NodeFacts) (ownership.Action, bool) {
				if f.Record.Kind.Traits().Data && f.Copy.Size > f.Record.Size {
					return ownership.Action{Verb: ownership.Grow, Size: f.Record.Size}, true
				}
				return old(f)
			}
		})
	}},
}
