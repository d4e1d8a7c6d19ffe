package provision

// Warning is something that an administrator should mend on the machine although the pools
// work.
type Warning struct {
	Reason  Reason
	Message string
}

// The reasons of warnings.
const (
	// WroteGroup says that a pod wrote a volume group of its own.
	WroteGroup Reason = "VolumeGroupOfPod"
	// ReadsPods says that the machine's own LVM reads what pods write.
	ReadsPods Reason = "LVMReadsPodDevices"
)

// Warner is a Provisioner that notices such things.
type Warner interface {
	// Warnings returns what is known, without asking anybody.
	Warnings() []Warning
}

// WarningsOf returns the warnings of a provisioner; none of one that notices nothing.
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
