package shell

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/controller/oversight"
)

func controls(f func(r *oversight.Reconciler)) seam[*oversight.Reconciler] {
	return func(_ *process, r *oversight.Reconciler) *oversight.Reconciler {
		f(r)
		return r
	}
}

var mistakesOfControllers = []mistake{
	{class: conflictLost, name: "controller-overwrites", seen: 236, thought: "the controller has the last word", controller: controls(func(r *oversight.Reconciler) { r.Client = insisting{r.Client, r.Live} })},
}

type insisting struct {
	client.Client
	live client.Reader
}

func (x insisting) Status() client.SubResourceWriter { return insistently{x.Client.Status(), x.live} }

type insistently struct {
	client.SubResourceWriter
	live client.Reader
}

func (x insistently) Update(ctx context.Context, o client.Object, options ...client.SubResourceUpdateOption) error {
	mine := o.DeepCopyObject().(client.Object)
	err := x.SubResourceWriter.Update(ctx, o, options...)
	if !apierrors.IsConflict(err) {
		return err
	}
	now := o.DeepCopyObject().(client.Object)
	if err := x.live.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
		return err
	}
	mine.SetResourceVersion(now.GetResourceVersion())
	return x.SubResourceWriter.Update(ctx, mine, options...)
}
