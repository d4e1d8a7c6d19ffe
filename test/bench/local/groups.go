package main

// thinSize is enough for the data that LVM itself writes: nothing fills the volumes.
const thinSize = "512M"

// withoutUdev makes LVM manage device nodes itself, as Berth has it do: mixed with
// commands that leave them to udev, names stay behind.
const withoutUdev = "activation{udev_sync=0 udev_rules=0 monitoring=0} devices{obtain_device_list_from_udev=0}"

// runLVM runs an LVM command.
func runLVM(args ...string) (string, error) {
	return runTool("lvm", append([]string{args[0], "--config", withoutUdev}, args[1:]...)...)
}

// makeGroup makes the volume group of a side, and the thin pool in it.
func makeGroup(pool, side string) error {
	if _, err := runLVM("vgcreate", "--yes", "-ff", poolName(side), disks[side]); err != nil || pool != thin {
		return err
	}
	_, err := runLVM("lvcreate", "--yes", "--type", "thin-pool", "--size", thinSize, "--name", "pool", poolName(side))
	return err
}

func removeGroup(side string) error {
	_, err := runLVM("vgremove", "--yes", "--force", poolName(side))
	return err
}
