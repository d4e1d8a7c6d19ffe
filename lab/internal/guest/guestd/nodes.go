package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// staticNode is a device file of a module that is not loaded: the kernel loads it when
// the file is opened.
type staticNode struct {
	name         string // below /dev
	kind         uint32 // syscall.S_IFCHR or S_IFBLK
	major, minor uint32
}

// makeStaticNodes makes the device files that systemd makes on a Debian machine
// (kmod static-nodes). udev gives them their permissions when it starts.
func makeStaticNodes(dev string) error {
	var system syscall.Utsname
	if err := syscall.Uname(&system); err != nil {
		return fmt.Errorf("asking for the kernel's version: %w", err)
	}
	list, err := os.Open(filepath.Join("/lib/modules", text(system.Release[:]), "modules.devname"))
	if err != nil {
		return fmt.Errorf("reading the modules' devices: %w", err)
	}
	defer list.Close()
	nodes, err := parseStaticNodes(list)
	if err != nil {
		return fmt.Errorf("reading the modules' devices: %w", err)
	}
	for _, n := range nodes {
		path := filepath.Join(dev, n.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		number := int(n.major<<8 | n.minor) // both are small: these are the oldest numbers there are
		if err := syscall.Mknod(path, n.kind|0o600, number); err != nil && !errors.Is(err, syscall.EEXIST) {
			return fmt.Errorf("making %s: %w", path, err)
		}
	}
	return nil
}

// text returns the string that the kernel wrote into a field of fixed size.
func text(field []int8) string {
	var b strings.Builder
	for _, c := range field {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// parseStaticNodes reads a modules.devname: lines of module, device and number, as in
// "fuse fuse c10:229".
func parseStaticNodes(r io.Reader) ([]staticNode, error) {
	var nodes []staticNode
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		var n staticNode
		var module string
		var kind rune
		if _, err := fmt.Sscanf(line, "%s %s %c%d:%d", &module, &n.name, &kind, &n.major, &n.minor); err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		n.kind = map[rune]uint32{'c': syscall.S_IFCHR, 'b': syscall.S_IFBLK}[kind]
		if n.kind == 0 || !filepath.IsLocal(n.name) || n.major > 0xfff || n.minor > 0xff {
			return nil, fmt.Errorf("line %q names no device", line)
		}
		nodes = append(nodes, n)
	}
	return nodes, lines.Err()
}
