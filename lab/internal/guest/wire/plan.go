package wire

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

const (
	// PlanFile is the first entry of the seed, a tar archive on its own disk.
	// All other entries are files for the guest's root directory.
	PlanFile = "plan.json"

	// Serial numbers by which a guest tells its disks apart.
	RootSerial   = "lab-root"
	SeedSerial   = "lab-seed"
	ToolsSerial  = "lab-tools"
	ImagesSerial = "lab-images"

	// ToolsDir is where the read-only disk shared by all guests is mounted.
	ToolsDir = "/opt/lab"

	// ImagesDir is where the disk with containerd's state is mounted.
	ImagesDir = "/var/lib/containerd"

	// ManagementMAC is the hardware address of the interface for exec. Each
	// guest has a network of its own behind it, so all guests have the same.
	ManagementMAC     = "02:77:00:00:ff:01"
	ManagementAddress = "192.0.2.15" // TEST-NET-1: never an address in a cluster
	ManagementNetwork = "192.0.2.0/24"
	ManagementPort    = 7

	// ReadyPort is the virtio port a guest writes a line to when it answers
	// exec sessions.
	ReadyPort = "ready"

	// LogPortPrefix begins the names of the virtio ports that carry the
	// services' output to files on the host.
	LogPortPrefix = "log."
)

// Plan says how guestd sets up a guest.
type Plan struct {
	Hostname string            `json:"hostname"`
	Token    string            `json:"token"` // an exec session must present it
	Network  *Interface        `json:"network,omitempty"`
	Modules  []string          `json:"modules,omitempty"` // kernel modules to load
	Sysctl   map[string]string `json:"sysctl,omitempty"`  // path below /proc/sys to value
	Services []Service         `json:"services,omitempty"`
	// Tethered guests power off when their first session ends, or when none
	// has begun for a while: nothing remains when the process that started one dies.
	Tethered bool `json:"tethered,omitempty"`
}

// Interface is the guest's place in the lab's network.
type Interface struct {
	MAC     string `json:"mac"`
	Address string `json:"address"` // with prefix length
	Gateway string `json:"gateway"`
}

// Service is a program that runs as long as the guest does. Services are
// started in order, each when the one before is ready.
type Service struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"`
	// Socket is the path of a unix socket; the service is ready when it accepts
	// connections there. Empty: ready once started.
	Socket string `json:"socket,omitempty"`
	// Once: ready when it has ended, and not started again. A failure is
	// logged and does not keep later services from starting.
	Once bool `json:"once,omitempty"`
}

var validServiceName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// Validate reports everything that is wrong with the plan.
func (p Plan) Validate() error {
	var errs []error
	if !regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(p.Hostname) {
		errs = append(errs, fmt.Errorf("hostname %q: must be a DNS label", p.Hostname))
	}
	if len(p.Token) < 16 {
		errs = append(errs, errors.New("token: must have at least 16 characters"))
	}
	for name := range p.Sysctl {
		if strings.HasPrefix(name, "/") || name != path.Clean(name) || strings.HasPrefix(name, "..") {
			errs = append(errs, fmt.Errorf("kernel parameter %q: must be a path below /proc/sys", name))
		}
	}
	seen := map[string]bool{}
	for _, s := range p.Services {
		switch {
		case !validServiceName.MatchString(s.Name):
			errs = append(errs, fmt.Errorf("service name %q: must be lower-case letters, digits and dashes", s.Name))
		case seen[s.Name]:
			errs = append(errs, fmt.Errorf("service %s: named twice", s.Name))
		case len(s.Argv) == 0 || !path.IsAbs(s.Argv[0]):
			errs = append(errs, fmt.Errorf("service %s: the program must be an absolute path", s.Name))
		}
		seen[s.Name] = true
	}
	return errors.Join(errs...)
}
