package rules

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

var (
	agentAnswers      = denied("berth-agent-storagenodes", "an agent places orders for disks, each with an id of its own, and answers none")
	agentTakesAway    = denied("berth-agent-storagenodes", "an agent takes no order for a disk away; it orders the detach")
	controllerReports = denied("berth-controller-storagenodes", "a controller writes only the answers to orders for disks; the rest is the node's report")
	controllerOrders  = denied("berth-controller-storagenodes", "a controller answers an order to attach a disk, once, and places none")
	controllerTakes   = denied("berth-controller-storagenodes", "a controller takes away only an order to detach a disk")
)

func orderFor(disk, id string, wish v1alpha1.DiskWish, state v1alpha1.DiskOrderState) v1alpha1.DiskOrder {
	return v1alpha1.DiskOrder{Handle: "simcloud:///" + disk, Volume: "vol-" + disk, ID: id, Wish: wish, State: state, Since: metav1.Unix(1, 0)}
}

// orderCases are changes of a node's orders: "on" is placed, "has" is attached, and "off" is to be detached.
var orderCases = map[string]struct {
	change func(*v1alpha1.StorageNodeStatus)
	// agent and controller are the refusals to each.
	agent, controller string
}{
	"another order": {change: func(s *v1alpha1.StorageNodeStatus) {
		s.DiskOrders = append(s.DiskOrders, orderFor("new", "4", v1alpha1.DiskAttach, v1alpha1.DiskOrderPlaced))
	}, controller: controllerOrders},
	"another order that is carried out": {change: func(s *v1alpha1.StorageNodeStatus) {
		s.DiskOrders = append(s.DiskOrders, orderFor("new", "4", v1alpha1.DiskAttach, v1alpha1.DiskOrderAttached))
	}, agent: agentAnswers, controller: controllerOrders},
	"an order in place of the last one": {change: func(s *v1alpha1.StorageNodeStatus) {
		s.DiskOrders[1] = orderFor("has", "5", v1alpha1.DiskDetach, v1alpha1.DiskOrderPlaced)
	}, controller: controllerOrders},
	"an order under an old id": {change: func(s *v1alpha1.StorageNodeStatus) {
		s.DiskOrders[1] = orderFor("has", "2", v1alpha1.DiskDetach, v1alpha1.DiskOrderPlaced)
	}, agent: agentAnswers, controller: controllerOrders},
	"the answer that the disk is attached": {change: func(s *v1alpha1.StorageNodeStatus) { s.DiskOrders[0].State = v1alpha1.DiskOrderAttached }, agent: agentAnswers},
	"the answer that it is refused": {change: func(s *v1alpha1.StorageNodeStatus) {
		s.DiskOrders[0].State, s.DiskOrders[0].Problem = v1alpha1.DiskOrderRefused, "no slot"
	}, agent: agentAnswers},
	"a second answer": {change: func(s *v1alpha1.StorageNodeStatus) { s.DiskOrders[1].State = v1alpha1.DiskOrderRefused }, agent: agentAnswers, controller: controllerOrders},
	"an answer for another disk": {change: func(s *v1alpha1.StorageNodeStatus) {
		s.DiskOrders[0].State, s.DiskOrders[0].Volume = v1alpha1.DiskOrderAttached, "vol-other"
	}, agent: agentAnswers, controller: controllerOrders},
	"an answer to a detach": {change: func(s *v1alpha1.StorageNodeStatus) { s.DiskOrders[2].State = v1alpha1.DiskOrderAttached }, agent: agentAnswers, controller: controllerOrders},
	"no order to detach":    {change: func(s *v1alpha1.StorageNodeStatus) { s.DiskOrders = s.DiskOrders[:2] }, agent: agentTakesAway},
	"no order to attach":    {change: func(s *v1alpha1.StorageNodeStatus) { s.DiskOrders = s.DiskOrders[1:] }, agent: agentTakesAway, controller: controllerTakes},
	"two orders for a disk": {change: func(s *v1alpha1.StorageNodeStatus) {
		s.DiskOrders = append(s.DiskOrders, orderFor("on", "4", v1alpha1.DiskAttach, v1alpha1.DiskOrderPlaced))
	}, agent: "Duplicate value", controller: "Duplicate value"},
	"a feature of the node": {change: func(s *v1alpha1.StorageNodeStatus) { s.Features = []string{"more"} }, controller: controllerReports},
}

func TestANodeOrdersDisksAndControllersAnswer(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range orderCases {
		t.Run(name, func(t *testing.T) {
			n := storageNode(v1alpha1.VolumeName(t.Name()))
			report := n.Status
			if err := env.Client.Create(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			n.Status = report
			n.Status.DiskOrders = []v1alpha1.DiskOrder{
				orderFor("on", "1", v1alpha1.DiskAttach, v1alpha1.DiskOrderPlaced), orderFor("has", "2", v1alpha1.DiskAttach, v1alpha1.DiskOrderAttached),
				orderFor("off", "3", v1alpha1.DiskDetach, v1alpha1.DiskOrderPlaced),
			}
			if err := env.Client.Status().Update(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			for refusal, by := range map[*string]client.Client{&tc.agent: env.Agent(t, n.Name), &tc.controller: env.Controller(t)} {
				next := n.DeepCopy()
				tc.change(&next.Status)
				expect(t, by.Status().Update(t.Context(), next, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}}), *refusal)
			}
		})
	}
}

func TestAnAgentPlacesNoOrderForAnotherNode(t *testing.T) {
	env := apitest.Start(t)
	n := storageNode("ordered-by-another")
	if err := env.Client.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	n.Status.DiskOrders = []v1alpha1.DiskOrder{orderFor("on", "1", v1alpha1.DiskAttach, v1alpha1.DiskOrderPlaced)}
	expect(t, env.Agent(t, "another-node").Status().Update(t.Context(), n),
		denied("berth-agent-storagenodes", "the agent of another-node may write only its own StorageNode"))
}
