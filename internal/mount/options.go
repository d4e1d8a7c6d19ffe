package mount

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
)

// flags are accepted for every filesystem. "ro" is a field of the request. Flags that
// give a pod more rights ("dev", "suid", "remount", "bind") are missing on purpose.
var flags = map[string]bool{
	"noatime": true, "nodiratime": true, "relatime": true, "strictatime": true, "lazytime": true,
	"nodev": true, "noexec": true, "nosuid": true, "sync": true, "dirsync": true,
}

// flags returns the flags that have an effect on the filesystem.
func (f filesystem) flags() map[string]bool {
	heeded := maps.Clone(flags)
	for _, flag := range f.ignored {
		delete(heeded, flag)
	}
	return heeded
}

// reasons says why some common options are not on the list. A key that ends with "=" is the
// beginning of an option.
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

// CheckOptions is CheckAsked, but also accepts the option that Berth itself adds: nouuid,
// for copies of xfs.
func CheckOptions(name string, options []string) error {
	if name == provision.XFS {
		options = slices.DeleteFunc(slices.Clone(options), func(o string) bool { return o == "nouuid" })
	}
	return CheckAsked(name, options)
}

// CheckAsked returns ErrInvalid unless every option is on the list of those that are
// safe for the filesystem. Options come from users. A list of allowed options cannot be
// circumvented; a list of forbidden ones could be.
func CheckAsked(name string, options []string) error {
	known, ok := filesystems[name]
	if !ok {
		return fmt.Errorf("%w: filesystem %q is not one of %s", provision.ErrInvalid, name, strings.Join(provision.Filesystems(), ", "))
	}
	label, flags := "", known.flags()
	for _, o := range options {
		context, labelled := contextOf(o)
		switch {
		case labelled && label != "" && !SameContext(label, context):
			return fmt.Errorf("%w: two SELinux contexts, %s and %s: a volume is mounted with one", provision.ErrInvalid, label, context)
		case labelled:
			label = context
		case !flags[o] && !known.takes(o):
			return known.refusal(name, o)
		}
	}
	return nil
}

// takes says whether an option is on the list of those for the driver.
func (f filesystem) takes(option string) bool {
	for _, form := range f.options {
		if form.MatchString(option) {
			return true
		}
	}
	return false
}

// refusal returns the error for an option that is not on the list. It names the option, the
// reason if there is one, and the list.
func (f filesystem) refusal(name, option string) error {
	why := ""
	for begin, reason := range reasons {
		if option == begin || strings.HasSuffix(begin, "=") && strings.HasPrefix(option, begin) {
			why = ": " + reason
		}
	}
	list := append(slices.Collect(maps.Keys(f.flags())), slices.Collect(maps.Keys(f.options))...)
	slices.Sort(list)
	return fmt.Errorf("%w: mount option %.64q is not supported for %s%s (supported: ro, context=LABEL, %s)",
		provision.ErrInvalid, option, name, why, strings.Join(list, ", "))
}

// IsFlag says whether an accepted option is the same for every filesystem.
func IsFlag(option string) bool { return flags[option] }
