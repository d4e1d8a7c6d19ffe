package userland

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryReleaseOfDebianIsASourceOnceWithAllComponents(t *testing.T) {
	for name, tc := range map[string]struct{ out, want string }{
		"one release": {"https://mirror/debian bookworm\n", "deb https://mirror/debian bookworm main contrib\n"},
		"a release with several components": {"https://mirror/debian bookworm\nhttps://mirror/debian bookworm\n",
			"deb https://mirror/debian bookworm main contrib\n"},
		"several in any order": {"https://mirror/security bookworm-security\nhttps://mirror/debian bookworm\n",
			"deb https://mirror/debian bookworm main contrib\ndeb https://mirror/security bookworm-security main contrib\n"},
		"what apt cannot tell": {"https://mirror/debian \n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sourcesOf([]byte(tc.out))); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPackagesAreReadFromTheURIsThatAptWouldFetch(t *testing.T) {
	got, err := parseURIs([]byte(`'https://mirror/z/zfsutils-linux_2.1.11-1+deb12u1_amd64.deb' zfsutils-linux_2.1.11-1+deb12u1_amd64.deb 502308 SHA256:0
'https://mirror/l/libx_1%3a2.0-1_amd64.deb' libx_1%3a2.0-1_amd64.deb 1 SHA256:0
Reading package lists...
`))
	want := []deb{{"libx", "1:2.0-1"}, {"zfsutils-linux", "2.1.11-1+deb12u1"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(deb{})); err != nil || diff != "" {
		t.Errorf("%v, packages (-want +got):\n%s", err, diff)
	}
	if _, err := parseURIs([]byte("'https://mirror/odd.deb' odd.deb 1 SHA256:0\n")); err == nil {
		t.Error("a file of no version was taken")
	}
}
