package main

// freshArea and trashArea are the filesystems in which Berth makes volumes and keeps deleted
// ones. It makes each of them once in a pool.
const (
	freshArea = "berth-new"
	trashArea = "berth-trash"
)

// makeZpool makes the zpool of a side; where Berth's commands run without it, with what
// Berth would have made before.
func makeZpool(_, side string) error {
	zpool := poolName(side)
	if _, err := runTool("zpool", "create", "-f", "-O", "mountpoint=none", "-O", "volmode=dev", zpool, disks[side]); err != nil || side != sameSide {
		return err
	}
	for _, area := range []string{freshArea, trashArea} {
		if _, err := runTool("zfs", "create", "-o", "mountpoint=none", "-o", "canmount=off", zpool+"/"+area); err != nil {
			return err
		}
	}
	return nil
}

func removeZpool(side string) error {
	if err := settle(); err != nil {
		return err
	}
	_, err := runTool("zpool", "destroy", "-f", poolName(side))
	return err
}
