package mount

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// selinuxContext is user:role:type, with a level where the policy has levels.
var selinuxContext = regexp.MustCompile(`^[A-Za-z0-9_.]{1,64}:[A-Za-z0-9_.]{1,64}:[A-Za-z0-9_.]{1,64}(:s[0-9]{1,3}(-s[0-9]{1,3})?(:c[0-9]{1,4}([.,]c[0-9]{1,4}){0,64})?)?$`)

// contextOf reads the mount option context=LABEL. The kubelet puts the label into double
// quotes. A label with a comma must be quoted: in the kernel's list of options it would
// otherwise end at the comma.
func contextOf(option string) (label string, ok bool) {
	value, found := strings.CutPrefix(option, "context=")
	if !found {
		return "", false
	}
	label, quoted := strings.CutPrefix(value, `"`)
	if quoted {
		label, quoted = strings.CutSuffix(label, `"`)
	}
	if !selinuxContext.MatchString(label) || !quoted && (strings.Contains(label, ",") || label != value) {
		return "", false
	}
	return label, true
}

// IsContext says whether an option is meant to be an SELinux context.
func IsContext(option string) bool { return strings.HasPrefix(option, "context=") }

// Context returns the SELinux context among accepted options. If it is empty, each file has
// a label of its own.
func Context(options []string) string {
	for _, o := range options {
		if label, ok := contextOf(o); ok {
			return label
		}
	}
	return ""
}

// ShownContext returns the SELinux context of a mounted filesystem, from its options as the
// kernel lists them; empty if it has none.
func ShownContext(options string) string {
	quoted := false
	for _, o := range strings.FieldsFunc(options, func(r rune) bool {
		quoted = quoted != (r == '"')
		return r == ',' && !quoted
	}) {
		if label, ok := strings.CutPrefix(o, "context="); ok {
			return strings.Trim(label, `"`)
		}
	}
	return ""
}

// SameContext says whether two contexts are the same for the kernel, which lists categories
// in order and joins neighbours: c3,c1,c2 is c1.c3. Types are not compared: they have
// aliases that only the policy knows, and the kernel may show another name than it was
// given. The levels, which are compared, keep pods apart.
func SameContext(a, b string) bool {
	partsA, partsB := strings.SplitN(a, ":", 5), strings.SplitN(b, ":", 5)
	const typeAt = 2
	if len(partsA) != len(partsB) || len(partsA) <= typeAt {
		return a == b
	}
	partsA[typeAt], partsB[typeAt] = "", ""
	if len(partsA) == 5 {
		if !slices.Equal(categories(partsA[4]), categories(partsB[4])) {
			return false
		}
		partsA, partsB = partsA[:4], partsB[:4]
	}
	return slices.Equal(partsA, partsB)
}

// categories returns the numbers of the categories in a list, sorted and without ranges.
func categories(list string) []int {
	var all []int
	for part := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(part, ".")
		from, to := category(first), category(first)
		if ranged {
			to = category(last)
		}
		for c := from; c <= to; c++ {
			all = append(all, c)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// category returns the number of a category, at most 9999 in a context of the accepted form;
// -1 if it is none.
func category(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "c"))
	if err != nil {
		return -1
	}
	return n
}
