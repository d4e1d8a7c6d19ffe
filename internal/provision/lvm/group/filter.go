package group

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// LVM would read the devices that pods write to as it reads any disk. A filter keeps its commands
// away from them. A filter alone is not enough: a device may appear while a command begins, and
// the machine's own filter counts too. So Berth also drops the groups on such devices from each
// report.

// neverOfTheNode are patterns for devices that no volume group of a node is on: zvols and network
// block devices, which are volumes of pods, and logical volumes of Berth's, which a machine's LVM
// may be told to scan.
var neverOfTheNode = []string{
	"r|^/dev/zd[0-9]|", "r|^/dev/nbd[0-9]|", "r|^/dev/rbd|", "r|^/dev/mapper/.*" + volumeMapping.String() + "|",
}

// Patterns reject the devices that pods write to, for LVM's filter.
func Patterns(written map[string]string, blocks map[string]Block) []string {
	all := slices.Clone(neverOfTheNode)
	for _, name := range slices.Sorted(maps.Keys(written)) {
		path := Path(name)
		if written[name] != "" && !volumeMapping.MatchString(blocks[name].Mapping) && !rejects(neverOfTheNode, path) {
			all = append(all, "r|^"+path+"$|")
		}
	}
	return all
}

// Path is the node of a device, by the kernel's name of it.
func Path(name string) string { return "/dev/" + strings.ReplaceAll(name, "!", "/") }

// HostSettings are the machine's own LVM settings that say which devices LVM reads.
type HostSettings struct {
	global, filter []string
	// DevicesFile that lists the devices; empty if none is used.
	DevicesFile string
}

// ParseHost reads LVM's settings, a line for each.
func ParseHost(out []byte) (h HostSettings, err error) {
	used := false
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "global_filter":
			h.global, err = parsePatterns(value)
		case "filter":
			h.filter, err = parsePatterns(value)
		case "use_devicesfile":
			used = value == "1"
		case "devicesfile":
			h.DevicesFile, err = strconv.Unquote(value)
		}
		if err != nil {
			return HostSettings{}, fmt.Errorf("reading LVM's settings: %s: %w", key, err)
		}
	}
	if !used {
		h.DevicesFile = ""
	}
	return h, nil
}

// parsePatterns returns none if all devices are accepted, as by default.
func parsePatterns(value string) (patterns []string, err error) {
	if !strings.HasPrefix(value, "[") {
		value = "[" + value + "]"
	}
	if err := json.Unmarshal([]byte(value), &patterns); err != nil {
		return nil, err
	}
	if slices.Equal(patterns, []string{"a|.*|"}) || slices.Equal(patterns, []string{"a|.*/|"}) {
		return nil, nil
	}
	return patterns, nil
}

// With returns the setting that makes LVM reject the devices of these patterns, in addition to
// those that the machine's settings reject. LVM has two filters, and reads a device that passes
// both. So the machine's filter stays as it is while the other is free.
//
// If both are taken, the patterns stand before those of the machine's global filter, and are
// weaker: LVM reads a device if one of the machine's patterns accepts any of its names.
func (h HostSettings) With(patterns []string) string {
	key := "devices/global_filter"
	switch {
	case len(h.global) > 0 && len(h.filter) == 0:
		key = "devices/filter"
	case len(h.global) > 0:
		patterns = slices.Concat(patterns, h.global)
	}
	var quoted []string
	for _, p := range patterns {
		quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p)+`"`)
	}
	return key + "=[" + strings.Join(quoted, ",") + "]"
}

// Reads returns the first name of the first of some devices that the machine's own LVM reads; empty if none. Each
// device has all its names. If LVM uses a devices file none counts: an administrator chose the devices in it.
func (h HostSettings) Reads(devices ...[]string) string {
	if h.DevicesFile != "" {
		return ""
	}
	for _, names := range devices {
		if passes(h.global, names) && passes(h.filter, names) {
			return names[0]
		}
	}
	return ""
}

// passes says whether LVM's patterns let a device through: one of them accepts a name of it, or none rejects one.
func passes(patterns, names []string) bool {
	rejected := false
	for _, n := range names {
		switch verdict(patterns, n) {
		case "a":
			return true
		case "r":
			rejected = true
		}
	}
	return !rejected
}

// closing are the delimiters of a pattern that end it otherwise than they begin it.
var closing = map[byte]string{'(': ")", '[': "]", '{': "}"}

// rejects says whether LVM's patterns reject a device by a name.
func rejects(patterns []string, path string) bool { return verdict(patterns, path) == "r" }

// verdict is that of the first pattern that matches a name: "a" if it accepts, "r" if it rejects, empty if none matches.
func verdict(patterns []string, path string) string {
	for _, p := range patterns {
		if len(p) < 3 {
			continue
		}
		end := closing[p[1]]
		if end == "" {
			end = p[1:2]
		}
		text, _ := strings.CutSuffix(p[2:], end)
		if matched, err := regexp.MatchString(text, path); err == nil && matched {
			return p[:1]
		}
	}
	return ""
}
