package guest

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"
)

// bootModules are the modules that a guest needs to find its disks and its interfaces.
// It loads all others from its root filesystem.
var bootModules = []string{"virtio_pci", "virtio_blk", "virtio_scsi", "sd_mod", "virtio_net", "virtio_console"}

// dependencies is the content of a kernel's modules.dep: the file of each
// module, by name, and the files it needs.
type dependencies struct {
	file  map[string]string
	needs map[string][]string // by file, each before those that need it
}

func parseDependencies(r io.Reader) (dependencies, error) {
	d := dependencies{file: map[string]string{}, needs: map[string][]string{}}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		file, needs, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			return d, fmt.Errorf("reading module dependencies: line %q has no colon", lines.Text())
		}
		d.file[moduleName(file)] = file
		d.needs[file] = strings.Fields(needs)
	}
	return d, lines.Err()
}

// moduleName returns the name of the module in a file: the kernel uses dashes
// and underscores as it likes.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// order returns the files to load for modules, each after those it needs.
// builtin modules need no file.
func (d dependencies) order(modules []string, builtin map[string]bool) ([]string, error) {
	var files []string
	seen := map[string]bool{}
	var add func(file string)
	add = func(file string) {
		if seen[file] {
			return
		}
		seen[file] = true
		for _, needed := range d.needs[file] {
			add(needed)
		}
		files = append(files, file)
	}
	for _, name := range modules {
		file, ok := d.file[moduleName(name)]
		switch {
		case ok:
			add(file)
		case !builtin[moduleName(name)]:
			return nil, fmt.Errorf("the kernel has no module %s", name)
		}
	}
	return files, nil
}

// parseBuiltin reads a kernel's modules.builtin.
func parseBuiltin(r io.Reader) (map[string]bool, error) {
	builtin := map[string]bool{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		builtin[moduleName(lines.Text())] = true
	}
	return builtin, lines.Err()
}
