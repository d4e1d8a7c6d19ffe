package decide

// Verb is what a process does next. A package that decides names the verbs of its own.
type Verb string

// The verbs of nodes' agents, and those that several packages have. Each is safe to carry out again after a
// crash.
const (
	// None: all is as it should be, and the objects say so.
	None Verb = "None"
	// Report: only the node's entry is out of date.
	Report Verb = "Report"
	// Create: carve a replica.
	Create Verb = "Create"
	// Expand: make a replica larger.
	Expand Verb = "Expand"
	// Take: take a snapshot.
	Take Verb = "Take"
	// Remove: delete data.
	Remove Verb = "Remove"
	// Keep: leave data where it is, though no object accounts for it.
	Keep Verb = "Keep"
	// Ensure: make a pool, or extend it, as a class asks.
	Ensure Verb = "Ensure"
	// Refuse: do not heed a class.
	Refuse Verb = "Refuse"
	// Tell: publish an event.
	Tell Verb = "Tell"
)

// Decision is what to do next, and why.
type Decision struct {
	Verb Verb
	// Reason is a CamelCase word for programs, and Message a text for people. Both are empty
	// where the verb alone says why.
	Reason, Message string
}
