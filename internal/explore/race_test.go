//go:build race

package explore_test

// raceDetector makes the worlds about ten times slower; there is no concurrency
// in them for it to find.
const raceDetector = true
