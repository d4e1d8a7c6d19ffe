package stream

import "time"

// choice is what is known about packing in one stream, by its frames so far. The zero value knows
// nothing. Its averages are of seconds per byte and not of bytes per second: most frames leave at once,
// into a buffer, and one in a few waits until the link has emptied it.
type choice struct {
	frames, tries int
	// leaving is what a byte on the wire takes until the link has it, limits included.
	leaving float64
	// packing is what a raw byte takes to be packed, and ratio is the packed length by the raw one.
	packing, ratio float64
}

const (
	// settle is how many frames fill the buffers of the link before its rate means something.
	settle = 16
	// probe is how often a frame is packed only to see what it would save. At 1 GB/s of the packer, this
	// costs a fiftieth of the time of a link of 1 GB/s.
	probe = 64
	// gain is the part of a frame's time that packing must stay below, because the measured rates waver.
	gain = 0.9
	// weight of the newest frame in each average.
	weight = 0.125
)

// next decides whether the next frame goes packed, and why.
func (c choice) next() (pack bool, reason string) {
	switch {
	case c.frames < settle:
		return false, "the rate of the link is not known yet"
	case c.frames%probe == settle || c.tries == 0:
		return true, "what packing saves is measured"
	case c.packing+c.ratio*c.leaving < gain*c.leaving:
		return true, "the link is slower than packing"
	}
	return false, "packing would take longer than it saves"
}

// spent is what one frame took.
type spent struct {
	raw, wire int
	// tried: the packer ran, for packing.
	tried   bool
	packing time.Duration
	// leaving is the time until the link had taken the frame.
	leaving time.Duration
}

// after returns what is known after one more frame.
func (c choice) after(f spent) choice {
	c.frames++
	c.leaving = blend(c.leaving, f.leaving.Seconds()/float64(f.wire), c.frames == 1)
	if f.tried {
		c.tries++
		c.packing = blend(c.packing, f.packing.Seconds()/float64(f.raw), c.tries == 1)
		c.ratio = blend(c.ratio, float64(f.wire)/float64(f.raw), c.tries == 1)
	}
	return c
}

func blend(old, now float64, first bool) float64 {
	if first {
		return now
	}
	return old*(1-weight) + now*weight
}
