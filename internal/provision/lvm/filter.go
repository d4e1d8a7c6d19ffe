package lvm

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What pods write to raw block volumes LVM would read as it reads any disk: a filter keeps
// its commands away from them. A filter alone cannot do: a device may appear while a command
// begins, and the machine's own filter counts too. So what a report holds of such devices is
// dropped as well.

// neverOfTheNode are patterns for devices that no volume group of a node is on: zvols and
// block devices of the network, which are volumes of pods, and logical volumes of Berth's,
// which a machine's LVM may be told to look into.
var neverOfTheNode = []string{
	"r|^/dev/zd[0-9]|", "r|^/dev/nbd[0-9]|", "r|^/dev/rbd|", "r|^/dev/mapper/.*" + volumeMapping.String() + "|",
}

// patterns reject the devices that pods write to, for LVM's filter.
func patterns(written map[string]string, blocks map[string]Block) []string {
	all := slices.Clone(neverOfTheNode)
	for _, name := range slices.Sorted(maps.Keys(written)) {
		path := "/dev/" + strings.ReplaceAll(name, "!", "/")
		if written[name] != "" && !volumeMapping.MatchString(blocks[name].Mapping) && !rejects(neverOfTheNode, path) {
			all = append(all, "r|^"+path+"$|")
		}
	}
	return all
}

// hostSettings are those of the machine's own settings of LVM that say which devices it reads.
type hostSettings struct {
	global, filter []string
	// devicesFile that lists the devices; empty if none is used.
	devicesFile string
}

// parseHost reads LVM's settings, a line for each.
func parseHost(out []byte) (h hostSettings, err error) {
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
			h.devicesFile, err = strconv.Unquote(value)
		}
		if err != nil {
			return hostSettings{}, fmt.Errorf("reading LVM's settings: %s: %w", key, err)
		}
	}
	if !used {
		h.devicesFile = ""
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

// with returns the setting that makes LVM reject what these patterns do and whatever the
// machine has it reject. LVM has two filters, and reads what passes both: so the
// machine's stays as it is while one of them is free.
//
// Put before a machine's own patterns they are weaker: a device of which one of these accepts
// any name is read.
func (h hostSettings) with(patterns []string) string {
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

// reads returns the first of some devices that the machine's own LVM reads; empty if none.
// What a devices file lists is its administrator's choice.
func (h hostSettings) reads(devices ...string) string {
	if h.devicesFile != "" {
		return ""
	}
	for _, d := range devices {
		if !rejects(h.global, d) && !rejects(h.filter, d) {
			return d
		}
	}
	return ""
}

// closing are the delimiters of a pattern that end it otherwise than they begin it.
var closing = map[byte]string{'(': ")", '[': "]", '{': "}"}

// rejects says whether LVM's patterns, of which the first that matches counts, reject a device.
func rejects(patterns []string, path string) bool {
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
			return p[0] == 'r'
		}
	}
	return false
}
