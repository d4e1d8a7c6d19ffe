package userland

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// tree is a root filesystem in memory, by clean path without leading slash.
type tree map[string]entry

type entry struct {
	header tar.Header
	data   []byte
}

// dropped are paths that no image needs.
var dropped = []string{
	"usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian", "usr/share/bug",
	"usr/share/bash-completion", "usr/share/initramfs-tools", "usr/share/readline", "usr/share/gcc", "usr/share/python3",
	"usr/share/doc-base", "usr/share/menu", "usr/share/polkit-1", "usr/share/gdb", "usr/lib/systemd", "usr/lib/udev",
	"usr/lib/x86_64-linux-gnu/gconv", "usr/lib/x86_64-linux-gnu/audit", "usr/lib/aarch64-linux-gnu/gconv",
	"usr/lib/aarch64-linux-gnu/audit", "usr/share/gconv", "etc/init.d", "etc/default", "etc/cron.d",
	"etc/pam.d", "etc/profile.d", "etc/security", "etc/skel", "etc/update-motd.d", "usr/share/base-files", "var", "usr/share/pam", "usr/share/pam-configs", "usr/share/terminfo", "usr/lib/terminfo",
}

// add reads the files of a package. Debian's older packages still ship files in /bin,
// /lib and /sbin. add puts them below /usr, because these directories are links to there.
func (t tree) add(r io.Reader) error {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading package: %w", err)
		}
		name := merged(path.Clean(strings.TrimPrefix(h.Name, ".")))
		if name == "" || unneeded(name) {
			continue
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if old, ok := t[name]; ok && (old.header.Typeflag != tar.TypeDir || h.Typeflag != tar.TypeDir) {
			return fmt.Errorf("two packages have %s", name)
		}
		t.put(name, h, data)
	}
}

// put keeps only the attributes that determine behaviour: no times, no owners by name.
func (t tree) put(name string, h *tar.Header, data []byte) {
	link := h.Linkname
	if h.Typeflag == tar.TypeLink {
		link = merged(path.Clean(strings.TrimPrefix(link, ".")))
	}
	t[name] = entry{data: data, header: tar.Header{
		Typeflag: h.Typeflag, Name: name, Linkname: link, Mode: h.Mode, Uid: h.Uid, Gid: h.Gid, Size: int64(len(data)),
	}}
}

func merged(name string) string {
	name = strings.TrimPrefix(name, "/")
	for _, top := range mergedDirs {
		if name == top || strings.HasPrefix(name, top+"/") {
			return "usr/" + name
		}
	}
	return strings.TrimPrefix(name, ".")
}

// mergedDirs are links to the directories of the same name below /usr.
var mergedDirs = []string{"bin", "lib", "lib64", "sbin"}

// documentation is where packages have their licences, among much that no image needs.
const documentation = "usr/share/doc/"

// unneeded reports whether no image needs a path. Licences stay: an image that is passed on
// must contain the licences of its programs. A package's own directory stays with them, as it
// may be a link to that of another package.
func unneeded(name string) bool {
	if in, ok := strings.CutPrefix(name, documentation); ok {
		return strings.Contains(in, "/") && path.Base(in) != "copyright"
	}
	return slices.ContainsFunc(dropped, func(d string) bool { return name == d || strings.HasPrefix(name, d+"/") })
}

// addBase adds the files that the missing base packages would have brought.
func (t tree) addBase() {
	for _, top := range mergedDirs {
		t.put(top, &tar.Header{Typeflag: tar.TypeSymlink, Linkname: "usr/" + top, Mode: 0o777}, nil)
	}
	for name, mode := range map[string]int64{
		"dev": 0o755, "etc": 0o755, "proc": 0o755, "root": 0o700, "run": 0o755, "run/lock": 0o755, "run/lvm": 0o700,
		"sys": 0o755, "tmp": 0o1777, "usr": 0o755, "usr/bin": 0o755, "usr/lib": 0o755, "usr/lib64": 0o755, "usr/sbin": 0o755,
		"var": 0o755, "var/lib": 0o755, "var/tmp": 0o1777,
	} {
		t.put(name, &tar.Header{Typeflag: tar.TypeDir, Mode: mode}, nil)
	}
	for name, content := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n",
		"etc/group":  "root:x:0:\ndisk:x:6:\nnogroup:x:65534:\n",
	} {
		t.put(name, &tar.Header{Typeflag: tar.TypeReg, Mode: 0o644}, []byte(content))
	}
	t.put("etc/mtab", &tar.Header{Typeflag: tar.TypeSymlink, Linkname: "/proc/mounts", Mode: 0o777}, nil)
	t.put("var/run", &tar.Header{Typeflag: tar.TypeSymlink, Linkname: "/run", Mode: 0o777}, nil)
}

// write writes the tree as a tar, in the order of the paths: a directory comes
// before its content and the bytes are always the same.
func (t tree) write(w io.Writer) error {
	tw := tar.NewWriter(w)
	names := slices.Sorted(maps.Keys(t))
	hardLinksLast := func(name string) bool { return t[name].header.Typeflag == tar.TypeLink }
	ordered := append(slices.DeleteFunc(slices.Clone(names), hardLinksLast),
		slices.DeleteFunc(names, func(n string) bool { return !hardLinksLast(n) })...)
	for _, name := range ordered {
		e := t[name]
		h := e.header
		if h.Typeflag == tar.TypeDir {
			h.Name += "/"
		}
		if err := tw.WriteHeader(&h); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if _, err := tw.Write(e.data); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return tw.Close()
}
