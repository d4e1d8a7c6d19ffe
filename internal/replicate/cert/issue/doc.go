// Package issue gives each node the certificate of package cert, and no other.
//
// An agent or a guard asks with a CertificateSigningRequest (NewManager). The API server writes into it
// who asks and, because the asker's token is bound to its pod, on which node: the asker cannot change that.
// Controllers ask for the one name that they share. The controller decides what to do with a request
// (Decide) and signs (Authority.Sign). It approves the asker's own name and nothing else, and signs no
// request that it would not have approved itself, although another process approved it.
package issue
