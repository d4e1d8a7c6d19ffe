package placed

import (
	"slices"

	"berth.dev/berth/internal/decide"
)

// Stale returns the names of objects that deserve another look after the pools changed, and of
// records that no object accounts for. The views have no records yet. possible says whether a
// step that was refused because of its pool may succeed now.
//
// Stale leaves steps under way to the workers that take them. If recovered, after an outage of
// the provisioner, it returns all objects that are unfinished: one that waits for its next try
// need not wait longer.
func Stale[O Object[E], E, R any](rules decide.Chain[View[O, E, R], Answer[E]], views []View[O, E, R], records map[string]*R, recovered bool, possible func(View[O, E, R]) bool) []string {
	var stale []string
	for _, v := range views {
		name := v.Object.GetName()
		v.Record = records[name]
		delete(records, name)
		verb := rules.Decide(v).Verb
		deserved := recovered && verb != decide.None
		if v.Entry != nil && v.Wanted() {
			deserved = deserved || verb == decide.Report || verb != decide.None && possible(v)
		}
		if deserved {
			stale = append(stale, name)
		}
	}
	for id := range records {
		stale = append(stale, id)
	}
	slices.Sort(stale)
	return stale
}
