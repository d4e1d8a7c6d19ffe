// Package process runs other programs: to completion ([Run], [Output]) or
// detached and recorded ([Start]).
//
// A detached process outlives the command that started it and is found again
// by its [Record], which holds the pid together with the kernel's start time
// of that pid. A pid alone may belong to somebody else by now; both together
// cannot. Nothing is ever looked up by program name.
//
// It is the only package of the lab that starts programs. Arguments are passed
// as a list and never through a shell.
package process
