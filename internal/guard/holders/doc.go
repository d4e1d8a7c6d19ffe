// Package holders finds the processes that hold a volume of this machine, stops those of pods, takes
// the volume's mounts away, and proves that nothing holds it any more.
//
// The kernel alone says what holds a volume: the numbers of the devices that files are on, and the
// mount table of each mount namespace. Names and paths prove nothing, because a pod chooses its own.
// A control group is killed only if it lies below that of all pods, is not the guard's or the
// agent's, and has a process that holds the volume. Whatever else holds the volume is left alone;
// then there is no proof, and the watchdog decides.
package holders
