package quantity

import (
	"fmt"
	"strconv"
	"strings"
)

var units = []struct {
	size int64
	name string
}{{1 << 40, "Ti"}, {1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}}

// Bytes prints a size as people write it in a claim. It is exact: a message "3Gi free,
// 3Gi asked" would be confusing if 4Mi are missing, so it says "3068Mi free".
func Bytes(n int64) string {
	for _, unit := range units {
		whole, rest := n/unit.size, n%unit.size
		if whole > 0 && rest*10%unit.size == 0 {
			return strings.TrimSuffix(fmt.Sprintf("%d.%d", whole, rest*10/unit.size), ".0") + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Rough prints a size for a glance at a table: two or more digits, rounded down.
func Rough(n int64) string {
	for _, unit := range units {
		switch whole := n / unit.size; {
		case whole >= 10:
			return fmt.Sprintf("%d%s", whole, unit.name)
		case whole > 0:
			return strings.TrimSuffix(fmt.Sprintf("%d.%d", whole, n%unit.size*10/unit.size), ".0") + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}
