package tsc

var read counter = rdtsc

// rdtsc returns the counter; it is implemented in read_amd64.s.
func rdtsc() uint64
