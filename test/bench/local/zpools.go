package main

// volumesArea is the filesystem in a pool in which Berth makes volumes.
const volumesArea = "berth-volumes"

// makeZpool makes the zpool of a side.
func makeZpool(_, side string) error {
	_, err := runTool("zpool", "create", "-f", "-O", "mountpoint=none", "-O", "volmode=dev", poolName(side), disks[side])
	return err
}

func removeZpool(side string) error {
	if err := settle(); err != nil {
		return err
	}
	_, err := runTool("zpool", "destroy", "-f", poolName(side))
	return err
}
