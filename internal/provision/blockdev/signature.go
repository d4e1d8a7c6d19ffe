package blockdev

import "bytes"

var noBytes = make([]byte, 64<<10)

// Zeros says whether bytes are all zeros.
func Zeros(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(noBytes))
		if !bytes.Equal(b[:n], noBytes[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// signatures of the most frequent data, for messages to people. They decide nothing.
var signatures = []struct {
	offset int
	magic  string
	what   string
}{
	{512, "EFI PART", "a partition table"}, {4096, "EFI PART", "a partition table"},
	{512, "LABELONE", "an LVM physical volume"},
	{0, "LUKS\xba\xbe", "an encrypted volume"},
	{0, "XFSB", "an xfs filesystem"}, {1 << 20, "XFSB", "an xfs filesystem without its partition table"},
	{1080, "\x53\xef", "an ext filesystem"}, {1<<20 + 1080, "\x53\xef", "an ext filesystem without its partition table"},
	{65600, "_BHRfS_M", "a btrfs filesystem"},
	{4086, "SWAPSPACE2", "swap space"},
	{4096, "\xfc\x4e\x2b\xa9", "a RAID member"},
	{510, "\x55\xaa", "a partition table"},
}

// Describe says for people which data the beginning of a disk is the beginning of, two MiB of it. It
// proves nothing.
func Describe(head []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(head[s.offset:], []byte(s.magic)) {
			return s.what
		}
	}
	return "data"
}
