package provision

// Warning describes a fault of the machine that an administrator should repair although the
// pools work.
type Warning struct {
	Reason  Reason
	Message string
}

// Warner is a Provisioner that notices such faults.
type Warner interface {
	// Warnings returns the warnings that are known, from memory.
	Warnings() []Warning
}

// WarningsOf returns the warnings of a provisioner; none if it is no Warner.
func WarningsOf(p any) []Warning {
	if w, ok := p.(Warner); ok {
		return w.Warnings()
	}
	return nil
}

var _ Warner = (*Mux)(nil)

// Warnings implements Warner.
func (m *Mux) Warnings() (all []Warning) {
	for _, member := range m.members {
		all = append(all, WarningsOf(member.Provisioner)...)
	}
	return all
}
