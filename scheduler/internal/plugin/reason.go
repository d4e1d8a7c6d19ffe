package plugin

import (
	"berth.dev/berth/internal/ledger"
)

// phrases are the reasons as kube-scheduler shows them: it puts the number of
// nodes before each.
var phrases = map[ledger.Reason]string{
	ledger.NotSynced:         "Berth's view of the cluster is not complete yet",
	ledger.Invalid:           "a volume of the pod has no valid size",
	ledger.UnknownClass:      "a PoolClass that the pod's volumes need does not exist",
	ledger.NotAdmitted:       "a PoolClass allows no inline volumes in the pod's namespace",
	ledger.HeldElsewhere:     "node(s) were not those where another pod has reserved room for the same claim",
	ledger.SiblingsElsewhere: "node(s) were not those where the pod's other volumes have their replicas",
	ledger.ClosedToPod:       "node(s) could not run the pod",
	ledger.NotReported:       "node(s) had not reported any storage",
	ledger.NodeNotReady:      "node(s) had a berth-agent that is silent or not ready",
	ledger.SourceElsewhere:   "node(s) did not have what a volume of the pod is made from",
	ledger.NotServed:         "node(s) had no pool of the PoolClass",
	ledger.OtherPool:         "node(s) had the pool that a volume belongs in elsewhere",
	ledger.PoolMissing:       "node(s) had a pool that is missing",
	ledger.PoolUnhealthy:     "node(s) had a pool that is unhealthy",
	ledger.OtherMedia:        "node(s) had pools on other media",
	ledger.PoolFull:          "node(s) had a thin pool that is too full",
	ledger.AgentTooOld:       "node(s) had a berth-agent that is too old for a volume of the pod",
	ledger.NoRoom:            "node(s) had not enough free space in a pool",
	ledger.NotTogether:       "node(s) had not enough free space for all of the pod's volumes together",
	ledger.NoStandby:         "node(s) had not enough further nodes for the replicas of the pod's volumes",
	ledger.TooManyWays:       "node(s) had too many ways to place the pod's volumes",
}

// why is a reason for people.
func why(reason ledger.Reason) string {
	if phrase, known := phrases[reason]; known {
		return phrase
	}
	return reason.Message()
}

// why is a verdict for people, with the names of the sources of the pod's claims.
func (c *cycle) why(verdict ledger.Verdict) string {
	if told := c.want.Why(verdict); told != "" {
		return "node(s) did not have the source: " + told
	}
	return why(verdict.Reason)
}
