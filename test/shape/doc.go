// Command shape measures the structure of the code that ships: the programs berth,
// kubectl-berth and berth-scheduler, without tests, fakes and generated files.
//
//	make shape
//
// It prints how large the code is, which types have the most methods, how often the
// backends of internal/provision do the same thing under the same name, how many files
// outside a backend know it by name, which folders of internal import each other, and
// which types stand for a decision. The figures do not depend on the machine: compare
// those of two commits.
package main
