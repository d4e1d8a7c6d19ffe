// Package keep is the loop of a guard: it gathers what package guard decides about, once a second,
// and carries the decision out. Whatever may take long, such as a renewal or the end of a pod, runs
// beside the loop, and only its result counts: the watchdog is fed by the loop alone, so it is never
// fed by a guard that waits for something.
package keep
