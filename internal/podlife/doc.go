// Package podlife says how far a pod has come, by what its kubelet has written of it.
package podlife
