package userland

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"maps"
	"path"
	"slices"
	"strings"
)

// dropBroken removes programs and libraries that need a library which is not
// in the tree, until all others can be loaded. It returns the removed files:
// they are the consequence of the packages that were left out.
func (t tree) dropBroken() []string {
	var removed []string
	for {
		libraries := map[string]bool{}
		for name, e := range t {
			if e.header.Typeflag != tar.TypeDir {
				libraries[path.Base(name)] = true
			}
		}
		before := len(removed)
		for _, name := range slices.Sorted(maps.Keys(t)) {
			if !loadable(t[name].data, libraries) {
				delete(t, name)
				removed = append(removed, name)
			}
		}
		removed = append(removed, t.dropDangling()...)
		if len(removed) == before {
			return removed
		}
	}
}

// loadable reports whether all libraries that an ELF file names are there.
func loadable(data []byte, libraries map[string]bool) bool {
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return true // not a program
	}
	needed, err := file.ImportedLibraries()
	return err == nil && !slices.ContainsFunc(needed, func(lib string) bool { return !libraries[lib] })
}

// dropDangling removes links to files that are not, or no longer, in the tree.
func (t tree) dropDangling() []string {
	var removed []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		h := t[name].header
		target := h.Linkname
		switch {
		case h.Typeflag == tar.TypeSymlink && !path.IsAbs(target):
			target = path.Join(path.Dir(name), target)
		case h.Typeflag == tar.TypeSymlink && strings.HasPrefix(target, "/proc/"), h.Typeflag != tar.TypeSymlink && h.Typeflag != tar.TypeLink:
			continue
		}
		if _, ok := t[merged(target)]; !ok {
			delete(t, name)
			removed = append(removed, name)
		}
	}
	return removed
}

// missing returns those of the programs that are not in the tree.
func (t tree) missing(programs []string) []string {
	return slices.DeleteFunc(slices.Clone(programs), func(p string) bool {
		_, inBin := t["usr/bin/"+p]
		_, inSbin := t["usr/sbin/"+p]
		return inBin || inSbin
	})
}
