package mkfs

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// consistent refuses a setting that is given twice, and settings that the tool would refuse
// together. The tool would refuse them only while the pod is waiting already.
func consistent(filesystem string, all []setting) error {
	said := map[string]string{}
	for _, s := range all {
		if _, twice := said[s.name()]; twice {
			return fmt.Errorf("%s is given twice", strings.TrimSpace(s.name()))
		}
		said[s.name()] = s.value
	}
	has := func(name string) bool { _, ok := said[name]; return ok }
	switch {
	case has("-d su") != has("-d sw"):
		return errors.New("-d su and sw go together")
	case has("-E discard") && has("-E nodiscard"):
		return errors.New("-E discard and nodiscard contradict each other")
	case has("-i ") && has("-N "):
		return errors.New("-i and -N contradict each other")
	case filesystem == xfs:
		return blocks(said)
	}
	return nil
}

// blocks checks the other sizes of xfs against the size of its blocks.
func blocks(said map[string]string) error {
	of := func(name, byDefault string) int {
		n, _ := strconv.Atoi(cmp.Or(said[name], byDefault)) // one of a list of numbers
		return n
	}
	block := of("-b size", "4096")
	switch {
	case of("-i size", "512") > block/2:
		return fmt.Errorf("-i size is at most half of a block, which has %d bytes", block)
	case of("-n size", "4096") < block:
		return fmt.Errorf("-n size is at least a block, which has %d bytes", block)
	case of("-s size", "512") > block:
		return fmt.Errorf("-s size is at most a block, which has %d bytes", block)
	case said["-m finobt"] == "0" && said["-m inobtcount"] == "1":
		return errors.New("-m inobtcount=1 needs finobt")
	}
	return nil
}
