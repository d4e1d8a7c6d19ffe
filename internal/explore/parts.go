package explore

// The parts of a world are views of it, each with the methods of one kind of actor or judge. A part
// is made where it is needed and keeps nothing.
type (
	// agents are the nodes' agents, their kubelets and the pods.
	agents struct{ *World }
	// overseers are the controllers.
	overseers struct{ *World }
	// faults are events that no process causes: machines, links, the API server and people.
	faults struct{ *World }
	// wire carries streams between nodes.
	wire struct{ *World }
	// ending brings the world to rest, or lets it live with one lasting fault.
	ending struct{ *World }

	// The judges compare with the truth, which no process sees: copyJudge the data on the nodes,
	// diskJudge the shared disk and its attachments, recordJudge the changes of the record, and
	// restJudge the world at rest.
	copyJudge   struct{ *World }
	diskJudge   struct{ *World }
	recordJudge struct{ *World }
	restJudge   struct{ *World }
)

func (w *World) agents() agents           { return agents{w} }
func (w *World) overseers() overseers     { return overseers{w} }
func (w *World) faults() faults           { return faults{w} }
func (w *World) wire() wire               { return wire{w} }
func (w *World) copyJudge() copyJudge     { return copyJudge{w} }
func (w *World) diskJudge() diskJudge     { return diskJudge{w} }
func (w *World) recordJudge() recordJudge { return recordJudge{w} }
func (w *World) restJudge() restJudge     { return restJudge{w} }
