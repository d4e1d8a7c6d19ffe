package guest

// PID returns the number of the machine's process while it is on.
func (m *Machine) PID() int { return m.Process.PID }

// Device returns the path of a data disk in the guest.
func (m *Machine) Device(d Disk) string { return d.Device(m.Spec.Name) }
