// Package storageclass reads the parameters of a StorageClass.
//
// The same parser serves CreateVolume, where a mistake must be refused before
// anything is made, and the agents, which publish capacity for the classes they
// serve. An unknown key is an error and not a warning: a misspelt parameter
// would otherwise give a volume that its owner did not ask for.
package storageclass
