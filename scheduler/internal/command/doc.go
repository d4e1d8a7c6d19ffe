// Package command is the command line of berth-scheduler: kube-scheduler's, with
// Berth's plugins registered.
package command
