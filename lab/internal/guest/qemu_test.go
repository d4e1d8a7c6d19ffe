package guest

import (
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/guest/wire"
)

func spec() Spec {
	return Spec{
		Name: "node1", CPUs: 2, Memory: 2 << 30,
		Image: Image{Kernel: "/img/vmlinuz", Initramfs: "/img/initramfs", Root: "/img/root.img"},
		Disks: NewDisks(2, 10<<30),
	}
}

func arguments(t *testing.T, s Spec, p wire.Plan) string {
	t.Helper()
	args, err := qemuArguments(s, p, "/state/node,1", start{execPort: 12345, tscKHz: 2600000})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(args, " ")
}

func TestTheCommandLineDescribesTheMachine(t *testing.T) {
	s := spec()
	s.Tap, s.NetNS, s.Tools, s.Images = "tap-node1", "/run/netns/lab", "/img/tools.img", "/img/images.img"
	plan := wire.Plan{
		Network:  &wire.Interface{MAC: "02:00:00:00:00:07"},
		Services: []wire.Service{{Name: "kubelet"}},
	}
	line := arguments(t, s, plan)
	for what, want := range map[string]string{
		"frequency of the clock":      "tsc_early_khz=2600000",
		"memory":                      "-m 2048M",
		"processors":                  "-smp 2",
		"kernel":                      "-kernel /img/vmlinuz -initrd /img/initramfs",
		"the way to exec":             "hostfwd=tcp:127.0.0.1:12345-192.0.2.15:7",
		"no way out of the guest":     "restrict=on",
		"tap":                         "tap,id=lan,ifname=tap-node1",
		"hardware address":            "mac=02:00:00:00:00:07",
		"log of a service":            "name=log.kubelet",
		"console with escaped comma":  "path=/state/node,,1/console.log",
		"second data disk":            `"filename":"/state/node,1/disk2.raw"`,
		"serial number of a disk":     `"serial":"node1-disk1"`,
		"shared disk nobody writes":   "node-name=tools,read-only=on,file.driver=file,file.filename=/img/tools.img",
		"images, copied on write":     "driver=qcow2,node-name=images,cache.direct=off,cache.no-flush=on,discard=unmap,file.driver=file,file.filename=/state/node,,1/images.qcow2",
		"power-off instead of reboot": "-no-reboot",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("%s: %q is not in %s", what, want, line)
		}
	}
}

func TestOnlyAMachineThatResetsStartsAgain(t *testing.T) {
	s := spec()
	s.Resets = true
	if line := arguments(t, s, wire.Plan{}); strings.Contains(line, "-no-reboot") {
		t.Errorf("the machine powers off at a reset: %s", line)
	}
}

func TestADiskWithAFileIsTheSameInAllMachines(t *testing.T) {
	s := spec()
	s.Disks = []Disk{{Name: "shared1", Size: 1 << 20, File: "/state/shared/shared1.raw"}}
	line := arguments(t, s, wire.Plan{})
	for _, want := range []string{`"filename":"/state/shared/shared1.raw"`, `"serial":"shared-shared1"`, `"share-rw":true`} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is not in %s", want, line)
		}
	}
	if one, two := s.Disks[0].Device("node1"), s.Disks[0].Device("node2"); one != two {
		t.Errorf("the disk is %s in one machine and %s in another", one, two)
	}
}

func TestMachineWithoutNetworkHasOnlyTheExecInterface(t *testing.T) {
	line := arguments(t, spec(), wire.Plan{})
	if n := strings.Count(line, "virtio-net-pci"); n != 1 {
		t.Errorf("%d interfaces in %s", n, line)
	}
	for _, disk := range []string{"tools", "images"} {
		if strings.Contains(line, disk) {
			t.Errorf("a disk for %s in %s", disk, line)
		}
	}
}

func TestBadSpecificationsAreRefusedWithTheReason(t *testing.T) {
	if err := spec().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		spoil func(*Spec)
		want  string
	}{
		"name with a slash":        {func(s *Spec) { s.Name = "a/b" }, "machine name"},
		"name with a comma":        {func(s *Spec) { s.Name = "a,b" }, "machine name"},
		"no processor":             {func(s *Spec) { s.CPUs = 0 }, "processors"},
		"memory in the wrong unit": {func(s *Spec) { s.Memory = 2048 }, "memory"},
		"tap without address":      {func(s *Spec) { s.Tap = "tap0" }, "tap"},
		"two disks of a name":      {func(s *Spec) { s.Disks[1].Name = "disk1" }, "twice"},
		"disk of no size":          {func(s *Spec) { s.Disks[0].Size = 0 }, "disk1"},
		"disk of half a sector":    {func(s *Spec) { s.Disks[0].Size = 1000 }, "multiple"},
		"relative file of a disk":  {func(s *Spec) { s.Disks[0].File = "x.raw" }, "absolute path"},
		"disk name with a dot":     {func(s *Spec) { s.Disks[0].Name = "../x" }, "disk name"},
		"relative file":            {func(s *Spec) { s.Seed.Files = []File{{Path: "etc/hosts"}} }, "absolute"},
		"file with dots":           {func(s *Spec) { s.Seed.Files = []File{{Path: "/../x"}} }, "clean"},
		"the root as a file":       {func(s *Spec) { s.Seed.Files = []File{{Path: "/"}} }, "clean"},
		"relative source":          {func(s *Spec) { s.Seed.Files = []File{{Path: "/x", Source: "x"}} }, "source"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec()
			tc.spoil(&s)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error about %q", err, tc.want)
			}
		})
	}
}
