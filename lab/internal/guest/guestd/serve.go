package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"berth.dev/berth/lab/internal/guest/wire"
)

// serve carries out the plan and then answers exec sessions for ever.
func serve(ctx context.Context) error {
	if err := mountSystem(); err != nil {
		return err
	}
	plan, err := readPlan(ctx)
	if err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(plan.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := delegateCgroups("/sys/fs/cgroup"); err != nil {
		return err
	}
	if err := startDevices(ctx, plan); err != nil {
		return err
	}
	if err := configureNetwork(ctx, plan); err != nil {
		return err
	}
	for name, value := range plan.Sysctl {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("setting kernel parameter %s: %w", name, err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("%s:%d", wire.ManagementAddress, wire.ManagementPort))
	if err != nil {
		return fmt.Errorf("listening for exec sessions: %w", err)
	}
	if err := announce(wire.ReadyPort); err != nil {
		return fmt.Errorf("telling the host that the guest has booted: %w", err)
	}
	go runServices(ctx, plan.Services)
	return newServer(plan).serve(ctx, listener)
}

// readPlan reads the seed disk and mounts the tools disk and the images disk if
// there are such.
func readPlan(ctx context.Context) (wire.Plan, error) {
	device, err := waitForDisk(ctx, wire.SeedSerial, diskTimeout)
	if err != nil {
		return wire.Plan{}, err
	}
	seed, err := os.Open(device)
	if err != nil {
		return wire.Plan{}, fmt.Errorf("opening the seed disk: %w", err)
	}
	defer seed.Close()
	plan, err := readSeed(seed, "/")
	if err != nil {
		return wire.Plan{}, err
	}
	for _, disk := range []struct {
		serial string
		mount  mount
	}{
		{wire.ToolsSerial, mount{"", wire.ToolsDir, "ext4", syscall.MS_RDONLY | syscall.MS_NOATIME, "noload"}},
		{wire.ImagesSerial, mount{"", wire.ImagesDir, "ext4", syscall.MS_NOATIME, "noinit_itable"}},
	} {
		device, found := findDisk("/sys/block", disk.serial)
		if !found {
			continue
		}
		disk.mount.source = device
		if err := disk.mount.do(); err != nil {
			return wire.Plan{}, err
		}
	}
	return plan, nil
}

// delegateCgroups moves all processes out of the root cgroup and switches its
// controllers on for children: the kernel allows that only for a cgroup without processes.
func delegateCgroups(root string) error {
	leaf := filepath.Join(root, "init")
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return fmt.Errorf("creating cgroup: %w", err)
	}
	for _, pid := range []int{1, os.Getpid()} {
		if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), fmt.Append(nil, pid), 0o644); err != nil {
			return fmt.Errorf("moving process %d to its cgroup: %w", pid, err)
		}
	}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("reading cgroup controllers: %w", err)
	}
	for name := range strings.FieldsSeq(string(controllers)) {
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+name), 0o644); err != nil {
			return fmt.Errorf("delegating cgroup controller %s: %w", name, err)
		}
	}
	return nil
}

// startDevices sets up devices as the boot of a Debian machine does, and no further: a
// storage system must load the other modules that it needs by itself. lvm2's own rule for
// udev (69-lvm.rules) activates volume groups, at boot and when a disk is plugged in:
// without systemd the rule calls vgchange itself.
func startDevices(ctx context.Context, plan wire.Plan) error {
	if err := makeStaticNodes("/dev"); err != nil {
		return err
	}
	if err := startUdev(ctx, udevControl); err != nil {
		return err
	}
	commands := [][]string{
		// Only disks and their SCSI devices. The other devices of a virtual machine
		// need no drivers, and loading drivers for all of them takes seconds.
		{"udevadm", "trigger", "--action=add", "--subsystem-match=block", "--subsystem-match=scsi", "--subsystem-match=misc"},
		{"udevadm", "settle", "--timeout=170"},
	}
	if len(plan.Modules) > 0 {
		commands = slices.Insert(commands, 0, append([]string{"modprobe", "--all"}, plan.Modules...))
	}
	for _, argv := range commands {
		if err := run(ctx, "", argv...); err != nil {
			return err
		}
	}
	return nil
}

func configureNetwork(ctx context.Context, plan wire.Plan) error {
	var script strings.Builder
	script.WriteString("link set lo up\n")
	names := map[string]string{wire.ManagementMAC: "mgmt0"}
	if plan.Network != nil {
		names[plan.Network.MAC] = "lan0"
	}
	for mac, name := range names {
		current, err := interfaceByMAC(mac)
		if err != nil {
			return err
		}
		script.WriteString(fmt.Sprintf("link set %s down\nlink set %s name %s\nlink set %s up\n", current, current, name, name))
	}
	_, prefix, _ := strings.Cut(wire.ManagementNetwork, "/")
	script.WriteString(fmt.Sprintf("addr replace %s/%s dev mgmt0\n", wire.ManagementAddress, prefix))
	if n := plan.Network; n != nil {
		script.WriteString(fmt.Sprintf("addr replace %s dev lan0\nroute replace default via %s\n", n.Address, n.Gateway))
	}
	return run(ctx, script.String(), "ip", "-batch", "-")
}

func interfaceByMAC(mac string) (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("listing interfaces: %w", err)
	}
	for _, i := range all {
		if i.HardwareAddr.String() == mac {
			return i.Name, nil
		}
	}
	return "", fmt.Errorf("no interface with hardware address %s", mac)
}

// run runs a program of the guest. If it fails, run prints its output on the console.
func run(ctx context.Context, stdin string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	return runCommand(cmd)
}

func runCommand(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	// A daemon may keep the output open. It is enough that the program ended.
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("running %s: %w: %s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
