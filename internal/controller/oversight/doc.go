// Package oversight carries out the controller's rules of ownership (ownership.OverseeRules): it fences
// a primary that is proved to be stopped, ends the pods that it left behind, and makes and removes
// replicas.
//
// Every controller of the Deployment oversees every volume. No leader is elected for it, so the loss of
// the node with the leader costs a failover no time. Each write of the record is a compare-and-swap with
// the record that was read: of two controllers that decide the same, one is refused, and asks again.
//
// # One question
//
// A question is asked anew for each decision. What it finds has an order, and each step relies on it:
//
//	1  the pods that use the volume, from the cache
//	2  the record, from the API server
//	3  the replicas' own answers
//	4  the primary's Node, the Lease of its guard and that of its kubelet, from the API server
//	5  what witnesses say now, and what the Contact has seen
//
// A proof that is older than the record may be about an earlier epoch: after it was found, the node may
// have come back and taken over. So 3 to 5 come after 2. Pods are the other way round: one that had begun
// on a node before the record was read, and whose node does not own the epoch then, has a dead mount. If
// it was looked at afterwards, it may have a live one, of the next epoch.
//
// Two facts come from caches. Which nodes store data is compared with the set that the suspect's lease
// names, so an old list proves nothing (ownership.ContractProves). That no pod wants a volume is asked of
// the API server before an attachment is taken away. The cache also says whether the primary's Node is
// worth reading: a proof that is not looked for is none.
//
// # Effects
//
//	E1  label Nodes        before E2: the scheduler sends nothing where the volume can not be used
//	E2  delete a pod       by its UID and the version that was judged, without grace; its node is fenced in the
//	                       record that was read
//	E3  write the record   PUT of the status with the version that was read, and the conditions that follow
//	E4  write the conditions alone, likewise; by the controller that leads
//	E5  create an event    its name follows from its content
//	E6  patch a Node's status
//	                       takes the volume off its volumes in use, in the version that was read, where Kubernetes
//	                       keeps VolumeAttachments; after E2
//
// A process may be killed between any two. The next question, in this process or another one, finds what is
// left to do. Only Contact is kept in memory: since when this process has been in contact, what it has
// seen of the nodes since, and since when it suspects each. A contact that breaks takes all of that with it.
package oversight
