package linux

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Cover mounts an empty filesystem that takes no writes at a path from which a volume was taken while its pod
// may still run, if the path is a pod's. A container that begins anew in that pod would else find a directory of
// the machine's own disk there: a database would make itself anew in it. Unmount takes the cover off with
// everything else: the kubelet's call for the pod's end does that.
//
// The volume is off the path all the same if this fails, so a failure must keep no proof back. The caller tells
// people of it.
func Cover(path string) error {
	if !strings.Contains(path, "/volumes/kubernetes.io~csi/") {
		return nil
	}
	err := unix.Mount("berth-stopped", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=0555")
	if err != nil {
		return fmt.Errorf("a container that begins anew in the pod of %s finds a directory of this machine in place of the volume, because it could not be covered: %w", path, err)
	}
	return nil
}
