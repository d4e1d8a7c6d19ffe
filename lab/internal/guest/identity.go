package guest

// PID returns the number of the machine's process while it is on.
func (m *directory) PID() int { return m.Process.PID }

// Device returns the path of a data disk in the guest.
func (m *directory) Device(d Disk) string { return d.Device(m.Spec.Name) }
