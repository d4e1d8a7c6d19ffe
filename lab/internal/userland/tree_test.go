package userland

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// packed returns a package's file archive as dpkg-deb writes it.
func packed(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(tw, h.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func file(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Uname: "builder"}
}

func symlink(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}

func treeOf(t *testing.T, packages ...io.Reader) tree {
	t.Helper()
	all := tree{}
	for _, p := range packages {
		if err := all.add(p); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func names(all tree) []string { return slices.Sorted(maps.Keys(all)) }

func TestFilesOfOldDirectoriesGoBelowUsr(t *testing.T) {
	dir := tar.Header{Typeflag: tar.TypeDir, Name: "./bin/"}
	hard := tar.Header{Typeflag: tar.TypeLink, Name: "./sbin/b", Linkname: "./bin/a"}
	all := treeOf(t, packed(t, dir, file("./bin/a"), hard), packed(t, dir, file("./usr/bin/c"), file("./binary")))
	if diff := cmp.Diff([]string{"binary", "usr/bin", "usr/bin/a", "usr/bin/c", "usr/sbin/b"}, names(all)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	if got := all["usr/sbin/b"].header.Linkname; got != "usr/bin/a" {
		t.Errorf("hard link leads to %q, want usr/bin/a", got)
	}
}

func TestDocumentationIsLeftOutAndLicencesStay(t *testing.T) {
	all := treeOf(t,
		packed(t, file("./usr/share/doc/lvm2/copyright"), file("./usr/share/doc/lvm2/changelog.gz"), symlink("./usr/share/doc/dmsetup", "lvm2")),
		packed(t, file("./usr/share/man/man8/lvm.8.gz"), file("./usr/share/documents")))
	want := []string{"usr/share/doc/dmsetup", "usr/share/doc/lvm2/copyright", "usr/share/documents"}
	if diff := cmp.Diff(want, names(all)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestTwoPackagesWithTheSameFileAreRefused(t *testing.T) {
	all := treeOf(t, packed(t, file("./bin/a")))
	if err := all.add(packed(t, file("./usr/bin/a"))); err == nil || !strings.Contains(err.Error(), "usr/bin/a") {
		t.Errorf("error is %v, want one that names the file", err)
	}
}

func TestTheTarIsTheSameHoweverThePackagesCame(t *testing.T) {
	write := func(all tree) []byte {
		all.addBase()
		var b bytes.Buffer
		if err := all.write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	one := write(treeOf(t, packed(t, file("./bin/a")), packed(t, file("./bin/b"))))
	two := write(treeOf(t, packed(t, file("./bin/b")), packed(t, file("./bin/a"))))
	if !bytes.Equal(one, two) {
		t.Error("the tar depends on the order of the packages")
	}
	wantDirectoriesFirst(t, one)
}

func wantDirectoriesFirst(t *testing.T, data []byte) {
	t.Helper()
	seen := map[string]bool{}
	tr := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[strings.TrimSuffix(h.Name, "/")] = true
		if i := strings.LastIndex(strings.TrimSuffix(h.Name, "/"), "/"); i > 0 && !seen[h.Name[:i]] {
			t.Errorf("%s comes before its directory", h.Name)
		}
		if h.Uname != "" || !h.ModTime.IsZero() && h.ModTime.Unix() != 0 {
			t.Errorf("%s has an owner's name or a time: %q, %v", h.Name, h.Uname, h.ModTime)
		}
	}
}

func TestProgramsWithoutTheirLibrariesAreDroppedWithTheirLinks(t *testing.T) {
	program, err := os.ReadFile("/bin/ls") // any program that is linked with libc
	if err != nil {
		t.Fatal(err)
	}
	all := treeOf(t, packed(t, file("./bin/script"), symlink("./bin/list", "ls"), symlink("./bin/again", "/bin/list"), symlink("./etc/mtab", "/proc/mounts")))
	all.put("usr/bin/ls", &tar.Header{Typeflag: tar.TypeReg, Mode: 0o755}, program)
	removed := all.dropBroken()
	slices.Sort(removed)
	if diff := cmp.Diff([]string{"usr/bin/again", "usr/bin/list", "usr/bin/ls"}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"etc/mtab", "usr/bin/script"}, names(all)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if got := all.missing([]string{"script", "ls"}); !cmp.Equal(got, []string{"ls"}) {
		t.Errorf("missing programs are %v, want ls", got)
	}
}

func TestAptsAnswerIsUnderstood(t *testing.T) {
	got, err := parseURIs([]byte(`NOTE: something
'http://deb.example/pool/mount_2.38.1-5_amd64.deb' mount_2.38.1-5_amd64.deb 134044 MD5Sum:1
'http://deb.example/pool/dmsetup_1.02_amd64.deb' dmsetup_2%3a1.02.185-2_amd64.deb 82040 MD5Sum:2
`))
	want := []deb{{"dmsetup", "2:1.02.185-2"}, {"mount", "2.38.1-5"}}
	if err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(deb{})) {
		t.Errorf("parseURIs = %v, %v; want %v", got, err, want)
	}
	if _, err := parseURIs([]byte("'http://x' strange.deb 1 MD5Sum:1\n")); err == nil {
		t.Error("a strange file name was accepted")
	}
}
