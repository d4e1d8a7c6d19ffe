package mkfs

import (
	"regexp"
	"testing"
)

// harmless words are no paths and nothing that a shell, or another program than mkfs, would act on.
var harmless = regexp.MustCompile(`^[A-Za-z0-9_=,.^-]+$`)

// A tenant may write the options of an inline volume.
func FuzzOptions(f *testing.F) {
	f.Add(true, "-I 512  -i 8192 -E stride=4")
	f.Add(false, "-d su=64k,sw=4 -m reflink=0 -K")
	f.Add(true, "-J device=/dev/sda")
	f.Fuzz(func(t *testing.T, isExt4 bool, options string) {
		filesystem := xfs
		if isExt4 {
			filesystem = ext4
		}
		accepted := Check(filesystem, options)
		args, err := Args(filesystem, options)
		if (err == nil) != (accepted == nil) {
			t.Fatalf("%q: checked with %v, and used with %v", options, accepted, err)
		}
		for _, a := range args {
			if !harmless.MatchString(a) {
				t.Errorf("%q gives mkfs %q", options, a)
			}
		}
		if normal := Normal(options); Normal(normal) != normal || (Check(filesystem, normal) == nil) != (accepted == nil) {
			t.Errorf("%q is recorded as %q, which is another", options, normal)
		}
	})
}
