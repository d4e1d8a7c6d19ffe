package mount

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
)

// flags are accepted for every filesystem. "ro" is a field of the request, and
// whatever widens what a pod may do ("dev", "suid", "remount", "bind") is missing
// on purpose.
var flags = map[string]bool{
	"noatime": true, "nodiratime": true, "relatime": true, "strictatime": true, "lazytime": true,
	"nodev": true, "noexec": true, "nosuid": true, "sync": true, "dirsync": true,
}

// allowed are the options that are passed to one filesystem's driver, by what is said
// of each to people.
var allowed = map[string]map[string]*regexp.Regexp{
	provision.Ext4: forms(map[string]string{
		"discard": ``, "nodiscard": ``, "barrier=1": ``, "auto_da_alloc": ``, "noauto_da_alloc": ``, "journal_checksum": ``,
		"commit=SECONDS":           `commit=[0-9]{1,4}`,
		"data=ordered|journal":     `data=(ordered|journal)`,
		"errors=remount-ro|panic":  `errors=(remount-ro|panic)`,
		"stripe=BLOCKS":            `stripe=[0-9]{1,6}`,
		"min|max_batch_time=USECS": `(min|max)_batch_time=[0-9]{1,7}`,
	}),
	provision.XFS: forms(map[string]string{
		"discard": ``, "nodiscard": ``, "inode32": ``, "inode64": ``, "largeio": ``, "nolargeio": ``,
		"noquota": ``, "uquota": ``, "gquota": ``, "pquota": ``, "swalloc": ``, "wsync": ``,
		"logbsize=SIZE":  `logbsize=(16k|32k|64k|128k|256k|[0-9]{5,6})`,
		"logbufs=2..8":   `logbufs=[2-8]`,
		"allocsize=SIZE": `allocsize=[0-9]{1,7}[kmg]?`,
	}),
	// The rest of how a dataset is mounted is in its properties.
	provision.Dataset: {},
}

// ignored are the flags that a filesystem would take and not heed.
var ignored = map[string][]string{provision.Dataset: {"dirsync", "lazytime"}}

// flagsOf are those of the flags that a filesystem heeds.
func flagsOf(filesystem string) map[string]bool {
	heeded := maps.Clone(flags)
	for _, flag := range ignored[filesystem] {
		delete(heeded, flag)
	}
	return heeded
}

// forms compiles them; without a form an option is just its name.
func forms(options map[string]string) map[string]*regexp.Regexp {
	compiled := map[string]*regexp.Regexp{}
	for says, form := range options {
		if form == "" {
			form = regexp.QuoteMeta(says)
		}
		compiled[says] = regexp.MustCompile("^(" + form + ")$")
	}
	return compiled
}

// reasons why some options that people know are not on the list, by how they begin.
var reasons = map[string]string{
	"nouuid":        "Berth sets it for copies, and only there: elsewhere it would hide a second filesystem of one identity",
	"noload":        "it shows a filesystem as it was before its journal is replayed",
	"norecovery":    "it shows a filesystem as it was before its log is replayed",
	"nobarrier":     "a loss of power would damage the filesystem",
	"barrier=0":     "a loss of power would damage the filesystem",
	"data=":         "with other modes than ordered and journal a crash shows old blocks in new files",
	"errors=":       "a filesystem that goes on after an error loses more",
	"logdev=":       "a volume is one device",
	"rtdev=":        "a volume is one device",
	"journal_dev=":  "a volume is one device",
	"journal_path=": "a volume is one device",
	"suid":          "it is what a mount has unless nosuid is given",
	"dev":           "it is what a mount has unless nodev is given",
	"remount":       "it is not for a first mount",
	"bind":          "Berth binds by itself",
	"fscontext=":    "of SELinux's options there is context=",
	"defcontext=":   "of SELinux's options there is context=",
	"rootcontext=":  "of SELinux's options there is context=",
	"context=":      "it is no SELinux context: user:role:type or user:role:type:level, in double quotes where it has a comma",
}

// CheckOptions is CheckAsked with what Berth adds by itself: nouuid, for copies of xfs.
func CheckOptions(filesystem string, options []string) error {
	if filesystem == provision.XFS {
		options = slices.DeleteFunc(slices.Clone(options), func(o string) bool { return o == "nouuid" })
	}
	return CheckAsked(filesystem, options)
}

// CheckAsked returns ErrInvalid unless every option is on the list of those that are
// safe for the filesystem. Options come from users; a list of what is allowed cannot be
// talked around.
func CheckAsked(filesystem string, options []string) error {
	known, ok := allowed[filesystem]
	if !ok {
		return fmt.Errorf("%w: filesystem %q is not one of %s, %s, %s", provision.ErrInvalid, filesystem, provision.Ext4, provision.XFS, provision.Dataset)
	}
	label, flags := "", flagsOf(filesystem)
	for _, o := range options {
		context, labelled := contextOf(o)
		switch {
		case labelled && label != "" && !SameContext(label, context):
			return fmt.Errorf("%w: two SELinux contexts, %s and %s: a volume is mounted with one", provision.ErrInvalid, label, context)
		case labelled:
			label = context
		case !flags[o] && !matches(known, o):
			return refusal(filesystem, o)
		}
	}
	return nil
}

func matches(known map[string]*regexp.Regexp, option string) bool {
	for _, form := range known {
		if form.MatchString(option) {
			return true
		}
	}
	return false
}

// refusal names the option, why it is not on the list if that is known, and the list.
func refusal(filesystem, option string) error {
	why := ""
	for begin, reason := range reasons {
		if option == begin || strings.HasSuffix(begin, "=") && strings.HasPrefix(option, begin) {
			why = ": " + reason
		}
	}
	list := append(slices.Collect(maps.Keys(flagsOf(filesystem))), slices.Collect(maps.Keys(allowed[filesystem]))...)
	slices.Sort(list)
	return fmt.Errorf("%w: mount option %.64q is not supported for %s%s (supported: ro, context=LABEL, %s)",
		provision.ErrInvalid, option, filesystem, why, strings.Join(list, ", "))
}

// IsFlag says whether an accepted option is the same for every filesystem.
func IsFlag(option string) bool { return flags[option] }
