package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a flag for a number of bytes, as in 512M or 10G (powers of 1024).
type size int64

var units = []struct {
	suffix string
	bytes  int64
}{{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

func (s *size) Set(text string) error {
	number, factor := strings.TrimSuffix(strings.TrimSuffix(text, "B"), "i"), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/factor {
		return fmt.Errorf("%q is not a size such as 512M or 10G", text)
	}
	*s = size(n * factor)
	return nil
}

func (s *size) String() string {
	for _, u := range units {
		if n := int64(*s); n != 0 && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.suffix)
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (*size) Type() string { return "size" }
