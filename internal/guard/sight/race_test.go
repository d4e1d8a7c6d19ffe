//go:build race

package sight

const raceDetector = true
