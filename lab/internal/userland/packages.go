package userland

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"berth.dev/berth/lab/internal/process"
)

// wanted are the packages with the tools Berth's agent runs. base-files has the texts of the
// licences that the packages' own files refer to, and names the release of Debian.
var wanted = []string{
	"base-files", "btrfs-progs", "e2fsprogs", "lvm2", "mount", "thin-provisioning-tools", "util-linux", "xfsprogs", "zfsutils-linux",
}

// unwanted are packages that the wanted ones depend on for programs that nothing
// runs in the image: maintainer scripts, xfs_scrub (ICU and Python), zdb, crash
// reports. Files that need a library of theirs are dropped with them.
var unwanted = []string{
	"debconf", "dpkg", "gcc-12-base", "init-system-helpers", "libaudit-common", "libcrypt1", "libdb5.3", "libffi8",
	"libfile-find-rule-perl", "libgdbm-compat4", "libgdbm6", "libicu72", "libnsl2", "libnumber-compare-perl", "libperl5.36",
	"libpython3-stdlib", "libpython3.11-minimal", "libpython3.11-stdlib", "libsqlite3-0", "libtext-glob-perl",
	"libtirpc-common", "libzpool5linux", "mawk", "media-types", "perl", "perl-base", "perl-modules-5.36", "python3", "python3-minimal",
	"python3.11", "python3.11-minimal", "sensible-utils", "tar", "usrmerge", "util-linux-extra",
}

// deb is one package file, as apt names it.
type deb struct {
	name    string
	version string
}

func (d deb) String() string { return d.name + "=" + d.version }

// resolve asks apt for the wanted packages and all their dependencies, as if
// nothing were installed, so that the answer is the same on every machine.
func (a archive) resolve(ctx context.Context, log io.Writer) ([]deb, error) {
	empty, err := os.CreateTemp("", "berth-lab-status-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(empty.Name())
	empty.Close()
	args := slices.Concat(a.options(), []string{
		"-qq", "-y", "-o", "Dir::State::status=" + empty.Name(), "-o", "APT::Install-Recommends=false",
		"--print-uris", "install",
	}, wanted)
	out, err := process.Output(ctx, process.Command{Path: "apt-get", Args: args, Log: log})
	if err != nil {
		return nil, fmt.Errorf("resolving Debian packages (apt-get update may help): %w", err)
	}
	all, err := parseURIs(out)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(d deb) bool { return slices.Contains(unwanted, d.name) }), nil
}

// parseURIs reads lines such as
//
//	'http://host/pool/m/mount/mount_2.38_amd64.deb' mount_2.38_amd64.deb 134044 SHA256:...
func parseURIs(out []byte) ([]deb, error) {
	var all []deb
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || !strings.HasPrefix(fields[0], "'") {
			continue
		}
		parts := strings.Split(strings.TrimSuffix(fields[1], ".deb"), "_")
		if len(parts) != 3 {
			return nil, fmt.Errorf("resolving Debian packages: unexpected file name %q", fields[1])
		}
		version, err := url.PathUnescape(parts[1]) // an epoch's colon is escaped
		if err != nil {
			return nil, fmt.Errorf("resolving Debian packages: %w", err)
		}
		all = append(all, deb{name: parts[0], version: version})
	}
	slices.SortFunc(all, func(a, b deb) int { return strings.Compare(a.name, b.name) })
	return all, lines.Err()
}

// download fetches packages into dir; apt checks them against the archive's
// signatures. It returns the files in the order of their names.
func (a archive) download(ctx context.Context, dir string, debs []deb, log io.Writer) ([]string, error) {
	args := append(a.options(), "-q", "download")
	for _, d := range debs {
		args = append(args, d.String())
	}
	if err := process.Run(ctx, process.Command{Path: "apt-get", Args: args, Dir: dir, Log: log}); err != nil {
		return nil, fmt.Errorf("downloading Debian packages: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return nil, err
	}
	if len(files) != len(debs) {
		return nil, fmt.Errorf("downloading Debian packages: got %d files for %d packages", len(files), len(debs))
	}
	slices.Sort(files)
	return files, nil
}
