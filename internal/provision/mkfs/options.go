package mkfs

import (
	"fmt"
	"strings"
)

// The filesystems that are made.
const (
	ext4 = "ext4"
	xfs  = "xfs"
)

// option is a flag with a value, with a list of keys, or with neither.
type option struct {
	flag  string
	value value
	keys  []key
}

// key is one of a flag's list: "su=64k", or a word alone.
type key struct {
	name  string
	value value
}

// allowed lists the options of each filesystem. Inodes of ext4 are no larger than the
// smallest block, and large enough for a year after 2038. Checksums of xfs cannot be
// turned off: kernels drop support for xfs without them.
var allowed = map[string][]option{
	ext4: {
		{flag: "-b", value: oneOf("1024", "2048", "4096")},
		{flag: "-E", keys: []key{
			{"discard", bare}, {"nodiscard", bare}, {"lazy_itable_init", onOff}, {"lazy_journal_init", onOff},
			{"packed_meta_blocks", onOff}, {"stride", between(1, 1<<20)}, {"stripe_width", between(1, 1<<20)},
		}},
		{flag: "-i", value: between(1<<10, 64<<20)},
		{flag: "-I", value: oneOf("256", "512", "1024")},
		{flag: "-J", keys: []key{{"size", between(4, 10240)}}},
		{flag: "-m", value: between(0, 50)},
		{flag: "-N", value: between(16, 1<<32-1)},
		{flag: "-O", keys: []key{
			{"large_dir", bare}, {"metadata_csum", bare}, {"metadata_csum_seed", bare}, {"orphan_file", bare},
			{"^large_dir", bare}, {"^metadata_csum", bare}, {"^metadata_csum_seed", bare}, {"^orphan_file", bare},
		}},
	},
	xfs: {
		{flag: "-b", keys: []key{{"size", oneOf("1024", "2048", "4096")}}},
		{flag: "-d", keys: []key{{"agcount", between(1, 1024)}, {"su", bytes}, {"sw", between(1, 1024)}}},
		{flag: "-i", keys: []key{
			{"maxpct", between(0, 100)}, {"nrext64", onOff}, {"size", oneOf("512", "1024", "2048")}, {"sparse", onOff},
		}},
		{flag: "-K"},
		{flag: "-l", keys: []key{{"size", bytes}, {"su", bytes}}},
		{flag: "-m", keys: []key{
			{"bigtime", onOff}, {"crc", oneOf("1")}, {"finobt", onOff}, {"inobtcount", onOff}, {"reflink", onOff}, {"rmapbt", onOff},
		}},
		{flag: "-n", keys: []key{{"size", oneOf("4096", "8192", "16384", "32768", "65536")}}},
		{flag: "-s", keys: []key{{"size", oneOf("512", "1024", "2048", "4096")}}},
	},
}

// find returns the option of a flag.
func find(filesystem, flag string) (option, error) {
	options, known := allowed[filesystem]
	if !known {
		return option{}, fmt.Errorf("filesystem %q is not one of %s, %s", filesystem, ext4, xfs)
	}
	var names []string
	for _, o := range options {
		if o.flag == flag {
			return o, nil
		}
		names = append(names, o.flag)
	}
	return option{}, fmt.Errorf("%.64q is not supported for %s (supported: %s)", flag, filesystem, strings.Join(names, " "))
}

// find returns the key of a name.
func (o option) find(name string) (key, error) {
	var all []string
	for _, k := range o.keys {
		if k.name == name {
			return k, nil
		}
		all = append(all, k.String())
	}
	return key{}, fmt.Errorf("%s %.64q is not supported (supported: %s)", o.flag, name, strings.Join(all, ", "))
}

func (k key) String() string {
	if k.value.accepts == nil {
		return k.name
	}
	return k.name + "=" + k.value.says
}
