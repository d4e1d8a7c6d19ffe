package provision

// Content says where the data of a volume is: on a block device, or in a tree of files, which is
// a filesystem that the provisioner made with the volume.
type Content struct {
	// Source that it is mounted from: the path of the block device, or the name that the
	// filesystem gives the tree. The kernel shows it in its mount table in the way that
	// mount.Within knows.
	Source string
	// Identity to compare the block device with before it is used; empty for a tree whose
	// source alone proves which one it is.
	Identity Identity
	// Tree is the kernel's name of the filesystem that the volume is by itself; empty for a
	// block device.
	Tree string
}

// IsTree says whether the volume is a filesystem by itself.
func (c Content) IsTree() bool { return c.Tree != "" }
