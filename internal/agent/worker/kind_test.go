package worker

import (
	"context"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/provision"
)

type (
	facts  = placed.Facts[provision.Volume]
	answer = placed.Answer[v1alpha1.ReplicaStatus]
)

// data is a kind with one volume v, of which it says what a test says.
type data struct {
	Kind[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume]
	readErr, reportErr, deleteErr error
	decision                      decide.Decision
	final                         bool

	deleted  bool
	reported []string // the messages of entries
}

func (*data) What() string { return "volume" }

func (f *data) Live(context.Context, string) (*v1alpha1.Volume, error) { return volume(), f.readErr }

func (f *data) Report(_ context.Context, _ *v1alpha1.Volume, e *v1alpha1.ReplicaStatus) error {
	f.reported = append(f.reported, e.Reason+": "+e.Message)
	return f.reportErr
}

func (f *data) Decide(_ *v1alpha1.Volume, given facts) answer {
	if given.Record == nil {
		return answer{Entry: &v1alpha1.ReplicaStatus{State: v1alpha1.ReplicaGone}, News: true}
	}
	return answer{Decision: f.decision}
}

func (f *data) Refusal(_ *v1alpha1.Volume, _ facts, _ decide.Verb, reason, message string) answer {
	return answer{Entry: &v1alpha1.ReplicaStatus{Reason: reason, Message: message}, News: true, Final: f.final}
}

func (*data) Says(*v1alpha1.ReplicaStatus) (own, gone bool) { return false, true }

func (*data) Describe(r *provision.Volume) (orphan.Record, string) {
	return orphan.Record{Name: r.ID}, "it has no object"
}

func (f *data) Delete(context.Context, *provision.Volume) error {
	f.deleted = f.deleteErr == nil
	return f.deleteErr
}

func volume() *v1alpha1.Volume {
	v := &v1alpha1.Volume{}
	v.Name = "v"
	return v
}

// work returns a worker for the kind, on node n where no administrator has said anything.
func (f *data) work() worker[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume] {
	return worker[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume]{Kind: f, Base: &Base{
		Node: "n", Orphans: &orphans.Set{}, Refused: func() {}, ToolFailed: func() {}, Deleted: func(string) {},
		Word: func(context.Context, orphan.Record) (orphan.Answer, error) { return orphan.Answer{}, nil },
	}}
}
