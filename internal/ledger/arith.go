package ledger

import "math/bits"

// unbounded is the ceiling of every figure. Sizes come from users, up to what an
// int64 holds; sums must stay meaningful, so all arithmetic saturates here.
const unbounded = int64(1) << 61

// addUp adds two figures that are not negative.
func addUp(a, b int64) int64 { return min(min(a, unbounded)+min(b, unbounded), unbounded) }

// multiply multiplies two figures that are not negative.
func multiply(a, b int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high != 0 || low > uint64(unbounded) {
		return unbounded
	}
	return int64(low)
}

// ceilDiv divides rounding up; it cannot overflow.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// percent of a figure, rounded up; whole and rest apart so that it cannot
// overflow before it saturates.
func percent(of int64, share int) int64 {
	return addUp(multiply(of/100, int64(share)), ceilDiv(of%100*int64(share), 100))
}
