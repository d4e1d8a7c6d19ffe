package inventory

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
)

// Package is a Debian package in a root filesystem.
type Package struct {
	Name, Version, Architecture string
}

// url is the package URL by which scanners know the package.
func (p Package) url() string {
	return "pkg:deb/debian/" + p.Name + "@" + url.PathEscape(p.Version) + "?arch=" + p.Architecture
}

// records is where a root filesystem without a package manager describes its packages.
const records = "var/lib/dpkg/status.d"

// Packages returns the packages of a root filesystem that is a tar, in the order of their names.
func Packages(rootfs string) ([]Package, error) {
	f, err := os.Open(rootfs)
	if err != nil {
		return nil, fmt.Errorf("reading the packages of a root filesystem: %w", err)
	}
	defer f.Close()
	var all []Package
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the packages of %s: %w", rootfs, err)
		}
		if path.Dir(h.Name) != records || h.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", h.Name, rootfs, err)
		}
		p, err := parsePackage(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", h.Name, rootfs, err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s does not say which packages it has", rootfs)
	}
	slices.SortFunc(all, func(a, b Package) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// parsePackage reads a package's description: lines of a key and a value, longer values
// going on in lines that begin with a space.
func parsePackage(text []byte) (Package, error) {
	fields := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && !strings.HasPrefix(key, " ") {
			fields[key] = strings.TrimSpace(value)
		}
	}
	p := Package{Name: fields["Package"], Version: fields["Version"], Architecture: fields["Architecture"]}
	if p.Name == "" || p.Version == "" || p.Architecture == "" {
		return Package{}, errors.New("no name, version or architecture in a package's description")
	}
	return p, lines.Err()
}
