//go:build race

package shell

// usual is how many schedules a test run plays: the race detector makes them about ten times slower.
const usual = 4
