// Package limit keeps replication from taking what the applications need.
//
// Two things are limited. Bytes: a Gate of Limits holds one volume's stream back to the rates of its volume,
// its node and the node's share of the cluster's. Streams: a Queue lets as many begin as there are places,
// in an order that Order decides. Both can be changed while streams run.
//
// Order and Share are functions of values and say why; the rest carries out what they decide.
package limit
