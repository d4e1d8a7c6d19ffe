package mkfs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestOptionsBecomeArguments(t *testing.T) {
	for name, tc := range map[string]struct{ filesystem, options, want string }{
		"ext4 with the defaults":                    {ext4, "", "-F -q -m 0 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1"},
		"xfs with the defaults":                     {xfs, "", "-f -q -K"},
		"inodes of ext4":                            {ext4, "-I 512  -i 8192", "-F -q -m 0 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 -I 512 -i 8192"},
		"an option changes a default":               {ext4, "-m 5", "-F -q -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 -m 5"},
		"an option changes a default within a list": {ext4, "-E lazy_itable_init=0", "-F -q -m 0 -E nodiscard,lazy_journal_init=1,lazy_itable_init=0"},
		"a list grows":                              {ext4, "-E stride=4 -E stripe_width=16", "-F -q -m 0 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1,stride=4,stripe_width=16"},
		"a discard replaces the default":            {ext4, "-E discard", "-F -q -m 0 -E lazy_itable_init=1,lazy_journal_init=1,discard"},
		"a feature is turned off":                   {ext4, "-O ^metadata_csum,large_dir", "-F -q -m 0 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 -O ^metadata_csum,large_dir"},
		"a stripe of xfs":                           {xfs, "-d su=64k,sw=4 -m reflink=0", "-f -q -K -d su=64k,sw=4 -m reflink=0"},
		"repeated keys of xfs":                      {xfs, "-m reflink=1 -i size=1024 -m bigtime=1", "-f -q -K -m reflink=1,bigtime=1 -i size=1024"},
		"an option repeats a default":               {xfs, "-K", "-f -q -K"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Args(tc.filesystem, tc.options)
			if diff := cmp.Diff(strings.Fields(tc.want), got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestARefusedOptionIsNamedWithTheSupportedOnes(t *testing.T) {
	for name, tc := range map[string]struct{ filesystem, options, want string }{
		"an identity":                           {ext4, "-U clear", `"-U" is not supported for ext4 (supported: -b -E`},
		"a journal on another device":           {ext4, "-J device=/dev/sda", `-J "device" is not supported (supported: size=4..10240)`},
		"no journal":                            {ext4, "-O ^has_journal", `-O "^has_journal" is not supported`},
		"an offset on the device":               {ext4, "-E offset=4096", `-E "offset" is not supported (supported: discard, nodiscard, lazy_itable_init=0|1`},
		"a volume that cannot grow":             {ext4, "-O ^resize_inode", "not supported"},
		"more than half of the blocks for root": {ext4, "-m 51", `-m "51" is not 0..50`},
		"inodes that end in 2038":               {ext4, "-I 128", `-I "128" is not 256|512|1024`},
		"a number that is octal":                {ext4, "-i 010000", "is not 1024..67108864"},
		"a number with a sign":                  {ext4, "-i +8192", "is not 1024..67108864"},
		"a negative number":                     {ext4, "-N -1", "is not 16..4294967295"},
		"a feature with a value":                {ext4, "-O large_dir=1", `-O "large_dir=1" is not large_dir`},
		"a key without a value":                 {ext4, "-E stride", `-E "stride" is not stride=1..1048576`},
		"an empty key":                          {ext4, "-E stride=4,", `-E "" is not supported`},
		"a flag without a value":                {ext4, "-I 512 -i", "-i has no value"},
		"a value without a flag":                {ext4, "8192", `"8192" is not supported`},
		"a value joined to the flag":            {ext4, "-i8192", `"-i8192" is not supported`},
		"a key twice":                           {ext4, "-E stride=4 -E stride=8", "-E stride is given twice"},
		"a flag twice":                          {ext4, "-I 512 -I 256", "-I is given twice"},
		"a feature on and off":                  {ext4, "-O large_dir,^large_dir", "-O large_dir is given twice"},
		"a discard and no discard":              {ext4, "-E discard,nodiscard", "contradict each other"},
		"an option of xfs for ext4":             {ext4, "-K", "not supported for ext4"},
		"an option of ext4 for xfs":             {xfs, "-I 512", "not supported for xfs"},
		"a log on another device":               {xfs, "-l logdev=/dev/sda", `-l "logdev" is not supported`},
		"a file for a device":                   {xfs, "-d file=1,name=/etc/passwd", `-d "file" is not supported`},
		"a filesystem smaller than the disk":    {xfs, "-d size=1g", `-d "size" is not supported`},
		"a xfs without checksums":               {xfs, "-m crc=0", `-m "crc=0" is not crc=1`},
		"a stripe without a width":              {xfs, "-d su=64k", "-d su and sw go together"},
		"inodes larger than half a block":       {xfs, "-b size=1024 -i size=1024", "at most half of a block, which has 1024 bytes"},
		"sectors larger than a block":           {xfs, "-b size=1024 -s size=2048", "-s size is at most a block"},
		"an inode count without the index":      {xfs, "-m finobt=0,inobtcount=1", "needs finobt"},
		"a number of inodes given in two ways":  {ext4, "-i 8192 -N 1000", "contradict each other"},
		"a size that is no number":              {xfs, "-l size=64x", "is not size=BYTES[k|m|g]"},
		"a shell":                               {xfs, "-K ;reboot", `";reboot" is not supported`},
		"a device":                              {xfs, "/dev/sda", `"/dev/sda" is not supported`},
		"an end of options":                     {xfs, "--", `"--" is not supported`},
		"an unknown filesystem":                 {"btrfs", "-f", `"btrfs" is not one of ext4, xfs`},
		"too much":                              {xfs, strings.Repeat(" ", 600), "at most 512"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(tc.filesystem, tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if args, err := Args(tc.filesystem, tc.options); err == nil {
				t.Errorf("it became %v", args)
			}
		})
	}
}

func TestAnUnknownFilesystemHasNoArguments(t *testing.T) {
	if args, err := Args("btrfs", ""); err == nil {
		t.Errorf("got %v", args)
	}
}

func TestOptionsAreRecordedWithOneBlankBetweenWords(t *testing.T) {
	if got := Normal("  -I 512\t-i  8192 "); got != "-I 512 -i 8192" {
		t.Errorf("got %q", got)
	}
}

// The arguments of any accepted options have no word that the tool would take for a
// device, and each flag once.
func TestNoAcceptedOptionsNameADevice(t *testing.T) {
	words := []string{"-K", "-I", "512", "-E", "discard", "nodiscard", "stride=4", "stride=4,discard", "-m", "1", "reflink=0", "-d", "su=4k,sw=2", "-i", "size=512", "2048", "/dev/sda", "--", "-"}
	rapid.Check(t, func(t *rapid.T) {
		filesystem := rapid.SampledFrom([]string{ext4, xfs}).Draw(t, "filesystem")
		options := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 8).Draw(t, "words"), " ")
		args, err := Args(filesystem, options)
		if (err == nil) != (Check(filesystem, options) == nil) {
			t.Fatalf("%q is refused and accepted", options)
		}
		seen, flag := map[string]bool{}, ""
		for _, arg := range args {
			switch {
			case strings.HasPrefix(arg, "-"):
				if seen[arg] {
					t.Fatalf("%q says %s twice: %v", options, arg, args)
				}
				seen[arg], flag = true, arg
			case flag == "":
				t.Fatalf("%q has the operand %s: %v", options, arg, args)
			default:
				flag = ""
			}
		}
	})
}
