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
	view   = placed.View[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume]
	answer = placed.Answer[v1alpha1.ReplicaStatus]
)

// data is that of one volume v, of which a test says how it is decided about.
type data struct {
	Access[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume]
	readErr, reportErr, deleteErr error
	decision                      decide.Decision
	final                         bool

	deleted  bool
	reported []string // the messages of entries
}

func (f *data) Live(context.Context, string) (*v1alpha1.Volume, error) { return volume(), f.readErr }

func (f *data) Report(_ context.Context, _ *v1alpha1.Volume, e *v1alpha1.ReplicaStatus) error {
	f.reported = append(f.reported, e.Reason+": "+e.Message)
	return f.reportErr
}

// kind is the kind that decides as the test says.
func (f *data) kind() placed.Kind[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume] {
	return placed.Kind[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume]{
		What: "volume",
		Decide: decide.Chain[view, answer]{
			{When: view.Missing, Then: func(view) answer {
				return answer{Entry: &v1alpha1.ReplicaStatus{State: v1alpha1.ReplicaGone}, News: true}
			}},
			{Then: func(view) answer { return answer{Decision: f.decision} }},
		}.Decide,
		Refusal: func(_ view, _ decide.Verb, reason, message string) answer {
			return answer{Entry: &v1alpha1.ReplicaStatus{Reason: reason, Message: message}, News: true, Final: f.final}
		},
		Says: func(*v1alpha1.ReplicaStatus) (pool string, own, gone bool) { return "", false, true },
		Describe: func(r *provision.Volume, _ string) (orphan.Record, string) {
			return orphan.Record{Name: r.ID}, "it has no object"
		},
	}
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
	return worker[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume]{Kind: f.kind(), Access: f, Base: &Base{
		Node: "n", Orphans: &orphans.Set{}, Refused: func() {}, ToolFailed: func() {}, Deleted: func(string) {},
		Word: func(context.Context, orphan.Record) (orphan.Answer, error) { return orphan.Answer{}, nil },
	}}
}
