// Package word is how the agent of a node speaks to the guard: one request and one answer, both JSON,
// for each connection to a unix socket. The socket is for root alone, which the kernel's word about
// the process at the other end says, whatever the mode of the socket is.
package word
