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
		"as the kubelet writes it":        {`context="system_u:object_r:container_file_t:s0:c15,c25"`, "system_u:object_r:container_file_t:s0:c15,c25", true},
		"without a level":                 {`context=system_u:object_r:nfs_t`, "system_u:object_r:nfs_t", true},
		"with a range of levels":          {`context=u:r:t:s0-s15:c0.c1023`, "u:r:t:s0-s15:c0.c1023", true},
		"a comma without quotes":          {`context=u:r:t:s0:c1,c2`, "", false},
		"one quote":                       {`context="u:r:t:s0`, "", false},
		"a quote at the end":              {`context=u:r:t:s0"`, "", false},
		"an option behind it":             {`context="u:r:t:s0",suid`, "", false},
		"an option within it":             {`context="u:r:t:s0,suid"`, "", false},
		"nothing":                         {`context=`, "", false},
		"a user alone":                    {`context=system_u`, "", false},
		"a line behind it":                {"context=u:r:t\nsuid", "", false},
		"the option of another mechanism": {`fscontext=u:r:t`, "", false},
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
		"equal":                      {"u:r:t:s0:c1,c2", "u:r:t:s0:c1,c2", true},
		"in another order":           {"u:r:t:s0:c2,c1", "u:r:t:s0:c1,c2", true},
		"neighbours that are joined": {"u:r:t:s0:c3,c1,c2", "u:r:t:s0:c1.c3", true},
		"twice":                      {"u:r:t:s0:c1,c1", "u:r:t:s0:c1", true},
		"without a level":            {"u:r:t", "u:r:t", true},
		"another category":           {"u:r:t:s0:c1,c2", "u:r:t:s0:c1,c3", false},
		"one category more":          {"u:r:t:s0:c1", "u:r:t:s0:c1,c2", false},
		"none":                       {"u:r:t:s0", "u:r:t:s0:c1", false},
		"another sensitivity":        {"u:r:t:s0:c1", "u:r:t:s1:c1", false},
		"a type by its alias":        {"u:r:a:s0:c1", "u:r:b:s0:c1", true},
		"another role":               {"u:a:t:s0:c1", "u:b:t:s0:c1", false},
		"none and none":              {"", "", true},
		"a context and none":         {"u:r:t", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if mount.SameContext(tc.a, tc.b) != tc.same || mount.SameContext(tc.b, tc.a) != tc.same {
				t.Errorf("%s and %s: want the same %v", tc.a, tc.b, tc.same)
			}
		})
	}
}
