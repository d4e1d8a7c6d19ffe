// Package cut says which fields of foreign objects the caches of controllers keep: those that some part of the process
// reads, and no others. A cluster has many pods and claims, and few are Berth's.
//
// A field that is cut looks empty to who reads it. So code that begins to read a field adds it here, and the
// simulations of controllers cut their caches likewise.
package cut
