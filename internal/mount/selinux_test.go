package mount_test

import (
	"errors"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func TestSELinuxContextsAreReadFromTheirOption(t *testing.T) {
	for name, tc := range map[string]struct {
		option, label string
		ok            bool
	}{
		"a context in the form of the kubelet":  {`context="system_u:object_r:container_file_t:s0:c15,c25"`, "system_u:object_r:container_file_t:s0:c15,c25", true},
		"a context without a level":             {`context=system_u:object_r:nfs_t`, "system_u:object_r:nfs_t", true},
		"a context with a range of levels":      {`context=u:r:t:s0-s15:c0.c1023`, "u:r:t:s0-s15:c0.c1023", true},
		"a comma without quotes":                {`context=u:r:t:s0:c1,c2`, "", false},
		"a single quote mark":                   {`context="u:r:t:s0`, "", false},
		"a quote mark at the end alone":         {`context=u:r:t:s0"`, "", false},
		"an option after the context":           {`context="u:r:t:s0",suid`, "", false},
		"an option within the quoted context":   {`context="u:r:t:s0,suid"`, "", false},
		"an empty context":                      {`context=`, "", false},
		"a user alone":                          {`context=system_u`, "", false},
		"a line after the context":              {"context=u:r:t\nsuid", "", false},
		"a similar option with another meaning": {`fscontext=u:r:t`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := mount.CheckAsked("xfs", []string{"noatime", tc.option})
			if errors.Is(err, provision.ErrInvalid) == tc.ok {
				t.Errorf("got %v", err)
			}
			if got := mount.Context([]string{"noatime", tc.option}); got != tc.label {
				t.Errorf("the context is %q", got)
			}
		})
	}
}

func TestAVolumeIsMountedWithOneContext(t *testing.T) {
	one, other := `context="u:r:t:s0:c1,c2"`, `context="u:r:t:s0:c1,c3"`
	if err := mount.CheckAsked("ext4", []string{one, one}); err != nil {
		t.Errorf("the same twice: %v", err)
	}
	if err := mount.CheckAsked("ext4", []string{one, other}); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("two: %v", err)
	}
	for context, ok := range map[string]bool{"": true, "u:r:t:s0:c1,c2": true, "u:r:t:s0,suid": false, `"u:r:t"`: false} {
		err := mount.BindRequest{Content: provision.Content{Source: "/dev/a", Identity: "dm:a"}, Target: "/b", Context: context}.Check()
		if errors.Is(err, provision.ErrInvalid) == ok {
			t.Errorf("a bind with %q: %v", context, err)
		}
	}
}

func TestTheContextOfAMountIsReadFromTheKernelsList(t *testing.T) {
	for options, want := range map[string]string{
		`rw,context="u:r:t:s0:c1,c2",inode64,noquota`: "u:r:t:s0:c1,c2",
		`rw,context=u:r:t:s0`:                         "u:r:t:s0",
		`rw,seclabel`:                                 "",
		`rw,fscontext=u:r:t:s0,rootcontext=u:r:t:s0`:  "",
		``: "",
	} {
		if got := mount.ShownContext(options); got != want {
			t.Errorf("%s: %q, want %q", options, got, want)
		}
	}
}

func TestContextsAreComparedAsTheKernelDoes(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		same bool
	}{
		"equal contexts":                       {"u:r:t:s0:c1,c2", "u:r:t:s0:c1,c2", true},
		"the same categories in another order": {"u:r:t:s0:c2,c1", "u:r:t:s0:c1,c2", true},
		"a range of categories":                {"u:r:t:s0:c3,c1,c2", "u:r:t:s0:c1.c3", true},
		"a category twice":                     {"u:r:t:s0:c1,c1", "u:r:t:s0:c1", true},
		"equal contexts without a level":       {"u:r:t", "u:r:t", true},
		"a different category":                 {"u:r:t:s0:c1,c2", "u:r:t:s0:c1,c3", false},
		"an additional category":               {"u:r:t:s0:c1", "u:r:t:s0:c1,c2", false},
		"no category":                          {"u:r:t:s0", "u:r:t:s0:c1", false},
		"a different sensitivity":              {"u:r:t:s0:c1", "u:r:t:s1:c1", false},
		"an alias of the same type":            {"u:r:a:s0:c1", "u:r:b:s0:c1", true},
		"a different role":                     {"u:a:t:s0:c1", "u:b:t:s0:c1", false},
		"two empty contexts":                   {"", "", true},
		"a context and an empty context":       {"u:r:t", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if mount.SameContext(tc.a, tc.b) != tc.same || mount.SameContext(tc.b, tc.a) != tc.same {
				t.Errorf("%s and %s: want the same %v", tc.a, tc.b, tc.same)
			}
		})
	}
}
