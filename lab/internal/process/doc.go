// Package process runs other programs: to completion ([Run], [Output]) or
// detached and recorded ([Start]).
//
// A detached process outlives the command that started it. Later commands find it
// by its [Record], which holds the pid together with the kernel's start time
// of that pid. A pid alone may belong to another process by now; both together
// cannot. The lab never looks a process up by its program name.
//
// It is the only package of the lab that starts programs. Arguments are passed
// as a list and never through a shell.
package process
