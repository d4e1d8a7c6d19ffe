//go:build !race

package shell

// usual is how many schedules a test run plays.
const usual = 100
