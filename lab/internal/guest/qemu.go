package guest

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"berth.dev/berth/lab/internal/guest/wire"
)

const qemuProgram = "qemu-system-x86_64"

// processorModel has all features that QEMU can emulate but two. Five-level page tables
// cost time at each look-up. With fast string operations the guest copies and clears
// memory byte by byte, which takes an emulator five times as long as words.
// To leave out more, try it with containers first: without SVM, for example, the kernel
// takes its own addresses for invalid, and without AVX programs in Go take twice as long.
const processorModel = "max,-la57,-erms"

// start holds the values that differ between two starts of a machine.
type start struct {
	execPort int    // of 127.0.0.1, leads to guestd
	tscKHz   uint64 // frequency of the host's time stamp counter, or 0
}

// kernelArguments returns the arguments of a guest's kernel. Programs are at the same
// addresses each time (norandmaps): QEMU then translates each program once, not once per
// process, and starting a process takes a third of the time. Timers wait for the clock's
// next tick (highres=off): the timer's registers are devices, and a write to one costs more
// than the work that most timers start.
func (b start) kernelArguments() string {
	args := "console=ttyS0 loglevel=4 panic=-1 net.ifnames=0 mitigations=off random.trust_cpu=on " +
		"no_timer_check cryptomgr.notests norandmaps highres=off"
	if b.tscKHz == 0 {
		return args
	}
	// See package tsc: the guest must neither measure nor doubt its clock.
	return args + fmt.Sprintf(" tsc=reliable tsc_early_khz=%d", b.tscKHz)
}

// qemuArguments returns the command line of the machine in dir, which is to be
// QEMU's working directory too.
func qemuArguments(s Spec, plan wire.Plan, dir string, begin start) ([]string, error) {
	file := func(name string) string { return filepath.Join(dir, name) }
	args := []string{
		"-name", s.Name, "-nodefaults", "-no-user-config", "-display", "none",
		"-machine", "q35,usb=off,hpet=off", "-accel", "tcg,thread=multi", "-cpu", processorModel,
		"-smp", fmt.Sprint(s.CPUs), "-m", fmt.Sprintf("%dM", s.Memory>>20),
		"-kernel", s.Image.Kernel, "-initrd", s.Image.Initramfs, "-append", begin.kernelArguments(),
		"-chardev", "file,id=console,append=on,path=" + escape(file(consoleLog)), "-serial", "chardev:console",
		"-qmp", "unix:" + qmpSocket + ",server=on,wait=off",
		"-netdev", fmt.Sprintf("user,id=mgmt,net=%s,dhcpstart=%s,restrict=on,hostfwd=tcp:127.0.0.1:%d-%s:%d",
			wire.ManagementNetwork, wire.ManagementAddress, begin.execPort, wire.ManagementAddress, wire.ManagementPort),
		"-device", "virtio-net-pci,netdev=mgmt,romfile=,mac=" + wire.ManagementMAC,
		"-device", "virtio-scsi-pci,id=scsi",
		"-device", "virtio-serial-pci,id=serial,max_ports=16",
		"-chardev", "file,id=ready,path=" + escape(file(readyFile)),
		"-device", "virtserialport,bus=serial.0,chardev=ready,name=" + wire.ReadyPort,
	}
	if !s.Resets {
		args = append(args, "-no-reboot")
	}
	if s.Tap != "" {
		args = append(args,
			"-netdev", "tap,id=lan,ifname="+s.Tap+",script=no,downscript=no",
			"-device", "virtio-net-pci,netdev=lan,romfile=,mac="+plan.Network.MAC)
	}
	for _, service := range plan.Services {
		args = append(args,
			"-chardev", "file,id=log-"+service.Name+",append=on,path="+escape(file(serviceLog(service.Name))),
			"-device", "virtserialport,bus=serial.0,chardev=log-"+service.Name+",name="+wire.LogPortPrefix+service.Name)
	}
	for _, d := range systemDisks(s, dir) {
		args = append(args, "-blockdev", d.backend, "-device", "virtio-blk-pci,drive="+d.name+",serial="+d.serial)
	}
	for _, d := range s.Disks {
		backend, err := json.Marshal(d.backend(dir))
		if err != nil {
			return nil, err
		}
		device, err := json.Marshal(d.device(s.Name))
		if err != nil {
			return nil, err
		}
		args = append(args, "-blockdev", string(backend), "-device", string(device))
	}
	return args, nil
}

type systemDisk struct{ name, serial, backend string }

func systemDisks(s Spec, dir string) []systemDisk {
	const cache = "cache.direct=off,cache.no-flush=on"
	overlay := func(name, serial, file string) systemDisk {
		return systemDisk{name, serial, "driver=qcow2,node-name=" + name + "," + cache +
			",discard=unmap,file.driver=file,file.filename=" + escape(filepath.Join(dir, file))}
	}
	disks := []systemDisk{
		overlay("root", wire.RootSerial, overlayFile),
		{"seed", wire.SeedSerial, "driver=raw,node-name=seed,read-only=on,file.driver=file,file.filename=" + escape(filepath.Join(dir, seedFile))},
	}
	if s.Tools != "" {
		disks = append(disks, systemDisk{"tools", wire.ToolsSerial,
			"driver=raw,node-name=tools,read-only=on,file.driver=file,file.filename=" + escape(s.Tools)})
	}
	if s.Images != "" {
		disks = append(disks, overlay("images", wire.ImagesSerial, imagesFile))
	}
	return disks
}

// backend returns the arguments of blockdev-add. QEMU never flushes the host's
// cache: a guest that dies loses nothing, and the lab does not outlive a crash of its
// machine anyway. Blocks that a guest overwrites with zeros take no room on the
// host: volumes are wiped all the time.
func (d Disk) backend(dir string) map[string]any {
	return map[string]any{
		"driver": "raw", "node-name": d.Name, "discard": "unmap", "detect-zeroes": "unmap",
		"cache": map[string]any{"direct": false, "no-flush": true},
		"file":  map[string]any{"driver": "file", "filename": d.path(dir)},
	}
}

// device returns the arguments of device_add.
func (d Disk) device(machine string) map[string]any {
	serial := d.Serial(machine)
	return map[string]any{
		"driver": "scsi-hd", "bus": "scsi.0", "id": deviceID(d.Name), "drive": d.Name,
		"serial": serial, "device_id": serial, "rotation_rate": 1, // 1: not a spinning disk
		"share-rw": d.File != "",
	}
}

// path returns the disk's file for a machine in dir.
func (d Disk) path(dir string) string {
	if d.File != "" {
		return d.File
	}
	return filepath.Join(dir, d.Name+".raw")
}

func deviceID(disk string) string { return "dev-" + disk }

// escape doubles commas, which separate QEMU's options.
func escape(path string) string {
	var out []rune
	for _, r := range path {
		if r == ',' {
			out = append(out, r)
		}
		out = append(out, r)
	}
	return string(out)
}
