package holders

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/guard"
)

// killed is how long one Stop waits for the processes of one control group to end.
const killed = 2 * time.Second

// Config of a Kernel.
type Config struct {
	// Pods is the control group below which all pods are. Empty means that it is found from the
	// guard's own, which is a pod's.
	Pods string
	// Agent returns the control group of the agent's container, empty if it is not known.
	Agent func() string
	// Log is told of a pod's path that could not be covered.
	Log logr.Logger
}

// Kernel is the machine's kernel as it holds volumes.
type Kernel struct {
	host
	cgroups, pods, own string
	agent              func() string
	log                logr.Logger
}

// New finds the control groups. It fails where it could not stop a pod.
func New(c Config) (*Kernel, error) { return c.kernelOf(thisHost()) }

func (c Config) kernelOf(m host) (*Kernel, error) {
	k := &Kernel{host: m, pods: c.Pods, agent: c.Agent, log: c.Log}
	mounts, err := mounts(filepath.Join(k.proc, "self", "mountinfo"), mountinfo.FSTypeFilter("cgroup2"))
	if err != nil {
		return nil, err
	}
	if len(mounts) == 0 {
		return nil, errors.New("no control groups of version 2 are mounted: the guard needs them to stop pods")
	}
	k.cgroups = mounts[0].Mountpoint
	if k.own, err = cgroupOf(filepath.Join(k.proc, "self")); err != nil {
		return nil, err
	}
	if k.pods == "" {
		if k.pods, err = podsOf(k.own); err != nil {
			return nil, err
		}
	}
	if info, err := os.Stat(filepath.Join(k.cgroups, k.pods)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the control group of all pods, %s, is not below %s: the guard must see the machine's control groups", k.pods, k.cgroups)
	}
	return k, nil
}

// podsOf returns the control group of all pods, which the kubelet names, from that of one pod.
func podsOf(own string) (string, error) {
	parts := strings.Split(strings.Trim(own, "/"), "/")
	for i, part := range parts {
		if part == "kubepods" || part == "kubepods.slice" || strings.HasSuffix(part, "-kubepods.slice") {
			return "/" + strings.Join(parts[:i+1], "/"), nil
		}
	}
	return "", fmt.Errorf("this process is in control group %s, not in a pod's: name the control group of all pods with --pods-cgroup", own)
}

// Stop stops what holds a volume, as far as it may, and returns nil if nothing holds it any more.
// An error says what still does, or why that is not known. It is asked again until it returns nil.
func (k *Kernel) Stop(h guard.Holding) error {
	// A mount that goes while the processes are looked at was still there: who has only received it is spared.
	here, err := k.here(h)
	if err != nil {
		return err
	}
	// Those that were found are stopped even if there may be more: Free then gives no proof.
	holders, unknown := k.scan(h)
	// A container that begins anew finds a device again, and must not write into it. A
	// filesystem is unmounted first, so that its pages reach the device.
	if h.Block && (unknown == nil || errors.Is(unknown, errHangs)) && len(here) == 0 && !slices.ContainsFunc(holders, func(h holder) bool { return h.mount }) {
		if err := k.setReadOnly(h.Device, true); err != nil {
			return err
		}
	}
	var failed error
	for _, cgroup := range k.mayKill(holders, len(here) > 0) {
		failed = errors.Join(failed, k.kill(cgroup))
	}
	failed = errors.Join(failed, k.unmountAll(h))
	return errors.Join(failed, k.Free(h))
}

// mayKill returns the control groups of holders that are a pod's. A mount that passes goes with the machine's, so what is
// left of it when the machine has the volume mounted no longer does not pass.
func (k *Kernel) mayKill(holders []holder, here bool) []string {
	var out []string
	for _, h := range holders {
		if !(h.passing && here) && k.isTenant(h.cgroup) {
			out = append(out, h.cgroup)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isTenant tells whether a control group may be killed: it is below that of all pods, and neither
// has nor is in the pod of the guard or of the agent.
func (k *Kernel) isTenant(cgroup string) bool {
	if !below(cgroup, k.pods) {
		return false
	}
	for _, own := range []string{k.own, k.agent()} {
		if pod := path.Dir(own); below(own, k.pods) && (cgroup == pod || below(cgroup, pod) || below(pod, cgroup)) {
			return false
		}
	}
	return true
}

// below tells whether a control group is inside another. A path that leads upwards is of a control
// group that this process does not see.
func below(cgroup, parent string) bool {
	return strings.HasPrefix(cgroup, strings.TrimSuffix(parent, "/")+"/") && !strings.Contains(cgroup, "/..")
}

// kill ends every process of a control group, and waits until they have.
func (k *Kernel) kill(cgroup string) error {
	dir := filepath.Join(k.cgroups, cgroup)
	err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	if vanished(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("killing control group %s: %w", cgroup, err)
	}
	events, err := os.Open(filepath.Join(dir, "cgroup.events"))
	if vanished(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("waiting for control group %s to end: %w", cgroup, err)
	}
	defer events.Close()
	const step = 100 * time.Millisecond
	for range int(killed / step) {
		text := make([]byte, 256)
		n, err := events.ReadAt(text, 0)
		if errors.Is(err, unix.ENODEV) || strings.Contains(string(text[:n]), "populated 0") {
			return nil
		}
		k.endAll(cgroup)
		if err := k.await(events, step); err != nil {
			return fmt.Errorf("waiting for control group %s to end: %w", cgroup, err)
		}
	}
	return fmt.Errorf("control group %s has processes that do not end", cgroup)
}

// endAll kills the processes of a control group one by one. The kernel's own kill sends its signal to the first thread of
// each, and passes over a process whose first thread has ended. endAll returns no error: kill waits for what is left.
func (k *Kernel) endAll(cgroup string) {
	_ = filepath.WalkDir(filepath.Join(k.cgroups, cgroup), func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil //nolint:nilerr // it has gone meanwhile
		}
		text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil || pid <= 0 { // one of another namespace
				continue
			}
			_ = k.end(pid, func() bool {
				is, err := cgroupOf(filepath.Join(k.proc, field))
				return err == nil && (is == cgroup || below(is, cgroup))
			})
		}
		return nil
	})
}

// unmountAll takes the volume's mounts away, the newest first. Only a mount that lies on top at its
// path goes: the call names a path, and takes what is on top there.
func (k *Kernel) unmountAll(h guard.Holding) (err error) {
	all, err := mounts(filepath.Join(k.proc, "self", "mountinfo"), nil)
	if err != nil {
		return err
	}
	stacked, covered := map[string]int{}, map[string]bool{}
	for _, m := range all {
		if of(m, h) {
			stacked[m.Mountpoint]++
		}
	}
	for _, m := range slices.Backward(all) {
		if !covered[m.Mountpoint] && of(m, h) {
			if e := k.unmount(m.Mountpoint); e != nil {
				err = errors.Join(err, fmt.Errorf("unmounting %s: %w", m.Mountpoint, e))
			} else if stacked[m.Mountpoint] == 1 {
				k.hide(m.Mountpoint)
			}
		}
		covered[m.Mountpoint] = true
	}
	return err
}

// hide covers a pod's path. Without the cover the volume is stopped all the same, so a failure is no failure of
// the stop.
func (k *Kernel) hide(path string) {
	if err := k.cover(path); err != nil {
		k.log.Error(err, "a volume was stopped, and a path of it was not covered: end the pod before its containers begin anew", "path", path)
	}
}

// Free returns nil if nothing holds a volume: no process has it open or mounted in any mount
// namespace, and, if it has a device, no filesystem, mapping or other device uses that.
func (k *Kernel) Free(h guard.Holding) error {
	why, err := k.used(h)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("the volume is still held: %s; if a pod has it, end the pod", why)
	}
	if !h.Block {
		return nil
	}
	return k.idle(h.Device)
}

// Used names something that has a block device open or mounted, in any mount namespace: a process
// other than this one, a mount or a loop device. It is empty if nothing has. The caller opens the
// device exclusively to learn of filesystems and devices that use it and are not seen this way.
func Used(device string) (string, error) {
	return (&Kernel{host: thisHost()}).used(guard.Holding{Device: device, Block: true})
}

func (k *Kernel) used(h guard.Holding) (string, error) {
	holders, err := k.scan(h)
	if len(holders) > 0 {
		return fmt.Sprintf("%v, one of %d", holders[0], len(holders)), nil
	}
	if err != nil {
		return "", err
	}
	here, err := k.here(h)
	if err != nil {
		return "", err
	}
	if len(here) > 0 {
		return "it is mounted at " + here[0].Mountpoint, nil
	}
	return k.looped(h)
}

// Allow lets a volume be written again that a Stop made read-only.
func (k *Kernel) Allow(h guard.Holding) error {
	if !h.Block {
		return nil
	}
	return k.setReadOnly(h.Device, false)
}

// CgroupOf returns the control group of a process of a pod, and none of a process of the machine itself.
func (k *Kernel) CgroupOf(pid int) (string, error) {
	cgroup, err := cgroupOf(filepath.Join(k.proc, fmt.Sprint(pid)))
	if below(cgroup, k.pods) {
		return cgroup, nil
	}
	return "", err
}
