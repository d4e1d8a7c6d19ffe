package mount

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/moby/sys/mountinfo"

	"berth.dev/berth/internal/provision"
)

// filesystem says how volumes with one filesystem are mounted.
type filesystem struct {
	// options that are passed to its driver. The keys are the texts that name them to people.
	options map[string]*regexp.Regexp
	// ignored are the flags that it accepts without any effect.
	ignored []string
	// repair is the tool with which an administrator may repair it by hand.
	repair string
	// tree is set for a filesystem that volumes are by themselves.
	tree *tree
}

// tree says how the kernel mounts the trees of one filesystem, and how it shows their mounts.
type tree struct {
	// check refuses a source that no tree has. The kernel accepts any string as the source
	// of a mount.
	check func(provision.Content) error
	// arguments are the source that mount(2) is given, and the options that pick the tree.
	arguments func(provision.Content) (source string, options []string)
	// within returns the path inside the tree that a line of the mount table shows. A line
	// that shows no part of the tree is not ok.
	within func(provision.Content, *mountinfo.Info) (path string, ok bool)
	// proved says that only the mount itself proves which tree it shows.
	proved bool
}

// filesystems has one row for each filesystem.
var filesystems = map[string]filesystem{
	provision.Ext4: {
		options: forms(map[string]string{
			"discard": ``, "nodiscard": ``, "barrier=1": ``, "auto_da_alloc": ``, "noauto_da_alloc": ``, "journal_checksum": ``,
			"commit=SECONDS":           `commit=[0-9]{1,4}`,
			"data=ordered|journal":     `data=(ordered|journal)`,
			"errors=remount-ro|panic":  `errors=(remount-ro|panic)`,
			"stripe=BLOCKS":            `stripe=[0-9]{1,6}`,
			"min|max_batch_time=USECS": `(min|max)_batch_time=[0-9]{1,7}`,
		}),
		repair: "e2fsck",
	},
	provision.XFS: {
		options: forms(map[string]string{
			"discard": ``, "nodiscard": ``, "inode32": ``, "inode64": ``, "largeio": ``, "nolargeio": ``,
			"noquota": ``, "uquota": ``, "gquota": ``, "pquota": ``, "swalloc": ``, "wsync": ``,
			"logbsize=SIZE":  `logbsize=(16k|32k|64k|128k|256k|[0-9]{5,6})`,
			"logbufs=2..8":   `logbufs=[2-8]`,
			"allocsize=SIZE": `allocsize=[0-9]{1,7}[kmg]?`,
		}),
		repair: "xfs_repair",
	},
	// A dataset has no options of its own here: its properties set the rest.
	provision.Dataset: {
		ignored: []string{"dirsync", "lazytime"},
		repair:  "zpool scrub",
		tree:    &tree{check: checkDataset, arguments: sourceAlone, within: withinDataset},
	},
	// A subvolume has no options of its own: its filesystem is mounted already, with those that
	// the administrator chose.
	provision.Subvolume: {
		ignored: []string{"dirsync", "lazytime", "sync"},
		repair:  "btrfs scrub",
		tree:    &tree{check: checkSubvolume, arguments: subvolumeAt, within: withinSubvolume, proved: true},
	},
}

// forms compiles the forms of options; an option with an empty form is just its name.
func forms(options map[string]string) map[string]*regexp.Regexp {
	compiled := map[string]*regexp.Regexp{}
	for says, form := range options {
		if form == "" {
			form = regexp.QuoteMeta(says)
		}
		compiled[says] = regexp.MustCompile("^(" + form + ")$")
	}
	return compiled
}

// datasetName matches a dataset below a zpool.
var datasetName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)+$`)

const maxDatasetName = 255

func checkDataset(c provision.Content) error {
	if len(c.Source) > maxDatasetName || !datasetName.MatchString(c.Source) {
		return fmt.Errorf("%w: %.300q is no dataset of ZFS", provision.ErrInvalid, c.Source)
	}
	return nil
}

// withinDataset compares names: a dataset has no device number, and ZFS itself shows its present
// name.
func withinDataset(c provision.Content, line *mountinfo.Info) (path string, ok bool) {
	return line.Root, line.FSType == c.Tree && line.Source == c.Source
}

// subvolumePlace matches a subvolume of Berth's: a disk of its filesystem, and its path there.
var subvolumePlace = regexp.MustCompile(`^(/dev/[A-Za-z0-9_+.:/-]+)\[(/\.berth/volumes/[a-z0-9-]+/data)\]$`)

func checkSubvolume(c provision.Content) error {
	if !subvolumePlace.MatchString(c.Source) || c.Identity == "" {
		return fmt.Errorf("%w: %.300q (%.300q) is no subvolume of btrfs", provision.ErrInvalid, c.Source, c.Identity)
	}
	return nil
}

// withinSubvolume compares paths in the filesystem: the disk that a line shows may be any of its
// disks. Package linux proves the identity of the subvolume when it mounts or binds it.
func withinSubvolume(c provision.Content, line *mountinfo.Info) (path string, ok bool) {
	_, options := subvolumeAt(c)
	path, ok = strings.CutPrefix("subvol="+line.Root, options[0])
	return "/" + strings.TrimPrefix(path, "/"), ok && line.FSType == c.Tree && (path == "" || path[0] == '/' && path != "//deleted")
}

func subvolumeAt(c provision.Content) (source string, options []string) {
	disk, path, _ := strings.Cut(strings.TrimSuffix(c.Source, "]"), "[")
	return disk, []string{"subvol=" + path}
}

func sourceAlone(c provision.Content) (source string, options []string) { return c.Source, nil }

// Arguments are the source that mount(2) is given for a volume, and the options of the kernel that
// pick the volume there.
func Arguments(c provision.Content) (source string, options []string) {
	if t := filesystems[c.Tree].tree; t != nil {
		return t.arguments(c)
	}
	return sourceAlone(c)
}

// Proved says whether a mount of a volume must be proved to show that volume before others see it.
func Proved(c provision.Content) bool {
	t := filesystems[c.Tree].tree
	return t != nil && t.proved
}

// Within returns the path inside a tree that a line of the mount table shows: "/" for the whole
// tree. A line that shows no part of the tree is not ok.
func Within(c provision.Content, line *mountinfo.Info) (path string, ok bool) {
	if t := filesystems[c.Tree].tree; t != nil {
		return t.within(c, line)
	}
	return "", false
}

// RepairTool is the tool with which an administrator may repair a filesystem by hand.
func RepairTool(name string) string { return filesystems[name].repair }
