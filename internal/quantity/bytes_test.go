package quantity

import "testing"

const (
	mi = int64(1) << 20
	gi = int64(1) << 30
)

func TestBytes(t *testing.T) {
	tests := map[string]int64{
		"0": 0, "512": 512, "1Ki": 1 << 10, "32Mi": 32 * mi, "1.5Gi": 3 * gi / 2,
		"3068Mi": 3*gi - 4*mi, "3Gi": 3 * gi, "2Ti": 2048 * gi, "1025": 1025, "1048576Ti": 1 << 60,
	}
	for want, bytes := range tests {
		if got := Bytes(bytes); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", bytes, got, want)
		}
	}
}

func TestARoughSizeIsShortAndNeverTooLarge(t *testing.T) {
	for want, bytes := range map[string]int64{
		"0": 0, "512": 512, "1Ki": 1 << 10, "32Mi": 32*mi + 5, "1.5Gi": 3 * gi / 2, "2.9Gi": 3*gi - 4*mi, "1.9Ti": 2048*gi - 1,
		"14Ti": 15000 * gi, "1048576Ti": 1 << 60,
	} {
		if got := Rough(bytes); got != want {
			t.Errorf("Rough(%d) = %q, want %q", bytes, got, want)
		}
	}
}
