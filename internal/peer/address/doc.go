// Package address says at which address a node's agent or guard may be asked.
//
// Each process announces the address of its own pod in an annotation of its own Lease, which no other node can
// write. An address is a hint and no proof: the certificate of the process that answers says which node it is
// of. So a false address costs an answer, and an address that is old costs one until the next look.
//
// Controllers read the Leases that they watch. Agents read one Lease at a time, and remember it for half a
// minute, or for longer while the API server does not answer. A guard must be able to ask while the API server
// is away and after it has been replaced: it lists the guards' Leases once a minute, and keeps the addresses in
// a file beside its state.
package address
