// Package oracle is a second, naive implementation of the ledger's rules.
//
// A Model is told every event that a Ledger is told and nothing more. It keeps
// the objects as they were last seen. Whenever it is asked, it works every charge
// and every figure out from them again, with arithmetic of its own, without
// indexes and without memory of its earlier answers. Where the rules leave the
// ledger a choice (which of several pools a claim gets), the model adopts the
// ledger's choice after it has checked that it was a legal one.
//
// A Model stands on two parts: the objects as they were seen last, and the data of Volumes that
// follows from them. What is held for claims and inline volumes is the Model's own.
//
// The tests drive ledgers and models through random histories of a small
// cluster, and compare them after every step.
package oracle
