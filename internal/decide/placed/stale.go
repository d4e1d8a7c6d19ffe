package placed

import (
	"slices"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/provision"
)

// Stale returns the names of objects that deserve another look after the pools changed, and of
// records that no object accounts for: data that was lost or came back, a refused step that is
// possible now, and data that only a pool knows.
//
// Stale leaves steps under way to the workers that take them. If recovered, after an outage of
// the provisioner, it returns all objects that are unfinished: one that waits for its next try
// need not wait longer.
func (k Kind[O, E, R]) Stale(objects []O, node string, pools []provision.Pool, recovered bool) []string {
	records := k.Records(pools)
	var stale []string
	for _, o := range objects {
		name := o.GetName()
		v := Look(o, node, Facts[R]{Record: records[name]})
		delete(records, name)
		verb := k.Decide(v).Verb
		deserved := recovered && verb != decide.None
		if v.Entry != nil && v.Wanted() {
			deserved = deserved || verb == decide.Report || verb != decide.None && k.Possible(v, pools)
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
