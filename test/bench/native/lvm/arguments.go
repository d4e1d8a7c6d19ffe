package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// arguments are the parsed arguments of a command.
type arguments struct {
	flags    map[string]string
	tags     []string // --addtag
	gone     []string // --deltag
	operands []string
}

// valued are the options that have a value.
var valued = []string{
	"--config", "--reportformat", "--units", "--configreport", "-o", "--wipesignatures", "--zero", "--size", "--name",
	"--addtag", "--deltag", "--activate",
}

func parse(args []string) arguments {
	a := arguments{flags: map[string]string{}}
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(valued, args[i]) && i+1 < len(args):
			switch args[i] {
			case "--addtag":
				a.tags = append(a.tags, args[i+1])
			case "--deltag":
				a.gone = append(a.gone, args[i+1])
			}
			a.flags[args[i]] = args[i+1]
			i++
		case strings.HasPrefix(args[i], "-"):
			a.flags[args[i]] = ""
		default:
			a.operands = append(a.operands, args[i])
		}
	}
	return a
}

// operand returns the only operand.
func (a arguments) operand() (string, error) {
	if len(a.operands) != 1 {
		return "", fmt.Errorf("%d operands, want one: %q", len(a.operands), a.operands)
	}
	return a.operands[0], nil
}

// volume returns the group and the name in GROUP/NAME.
func volume(operand string) (group, name string, err error) {
	group, name, ok := strings.Cut(operand, "/")
	if !ok || group == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is no GROUP/NAME", operand)
	}
	return group, name, nil
}

// extents returns how many extents hold --size, which is in bytes.
func (a arguments) extents() (int64, error) {
	size, err := strconv.ParseInt(strings.TrimSuffix(a.flags["--size"], "b"), 10, 64)
	if err != nil || size <= 0 {
		return 0, fmt.Errorf("size %q: use a number of bytes with the suffix b", a.flags["--size"])
	}
	return (size + extentSize - 1) / extentSize, nil
}
