// Package cert proves to a node which other node it speaks with.
//
// A node's certificate has one name: the node's, below node.berth.dev. The suffix makes a DNS name even
// of a node that is named like an IP address, so that crypto/tls itself compares it, and no code of
// Berth replaces its checks. Controllers share one name, by which they ask questions of nodes and do
// nothing else. Package issue decides which node gets which certificate.
//
// Certificates and authorities are asked for at each handshake. So they can change at any time, and a
// stream under way does not notice.
package cert
