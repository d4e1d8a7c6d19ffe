package mkfs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// value describes the allowed values of an option.
type value struct {
	// says is for people: "0|1", "1024..65536". Empty for an option without a value.
	says    string
	accepts func(string) bool
}

// bare is a key or flag that has no value.
var bare = value{}

var onOff = oneOf("0", "1")

func oneOf(words ...string) value {
	return value{strings.Join(words, "|"), func(s string) bool { return slices.Contains(words, s) }}
}

// between accepts whole numbers without sign or leading zeros. It refuses forms that the
// tools read as octal or as a percentage.
func between(low, high int64) value {
	return value{fmt.Sprintf("%d..%d", low, high), func(s string) bool {
		n, err := strconv.ParseInt(s, 10, 64)
		return err == nil && n >= low && n <= high && strconv.FormatInt(n, 10) == s
	}}
}

var size = regexp.MustCompile(`^[1-9][0-9]{0,9}[kmg]?$`)

// bytes accepts sizes in the syntax of xfs: 65536, 64k, 1m.
var bytes = value{"BYTES[k|m|g]", size.MatchString}
