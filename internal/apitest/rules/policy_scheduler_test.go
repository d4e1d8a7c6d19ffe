package rules

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/usecase/volumes"
)

// The refusals of the policy to the scheduler.
var (
	onlyLocal        = denied("berth-scheduler-volumes", "a scheduler writes no Volume of another driver than local.berth.dev, and none with a kind of replication")
	onlyReservations = denied("berth-scheduler-volumes", "a scheduler makes a Volume only as a reservation, with the annotation berth.dev/reserved")
	adoptsNothing    = denied("berth-scheduler-volumes", "a scheduler adopts no data")
	leavesTheMark    = denied("berth-scheduler-volumes", "a scheduler neither puts the mark of a reservation on a Volume nor takes it off")
	changesNoData    = denied("berth-scheduler-volumes", "a scheduler changes and deletes only reservations and what no node has data of")
)

func reserved(v *v1alpha1.Volume) { v.Annotations = map[string]string{v1alpha1.ReservedAnnotation: ""} }

func adopted(v *v1alpha1.Volume) { v.Spec.Adopted = true }

func ofAnotherDriver(v *v1alpha1.Volume) { v.Spec.Driver = "other.example.org" }

func ofTheLocalDriver(v *v1alpha1.Volume) { v.Spec.Driver = v1alpha1.LocalDriverName }

func published(v *v1alpha1.Volume) { v.Annotations = nil }

func withReason(node string, state v1alpha1.ReplicaState, reason string) change {
	return entry(node, func(r *v1alpha1.ReplicaStatus) { r.State, r.Reason = state, reason })
}

// schedulerCase is a Volume, the change that the scheduler tries, and the refusals of the
// change and of a deletion.
type schedulerCase struct {
	volume   change
	status   []change
	change   change
	refusal  string
	deletion string
}

var schedulerCases = map[string]schedulerCase{
	"moves a reservation that no node has answered": {
		volume: reserved, change: wanted("n3")},
	"takes a refused reservation off the node": {
		volume: reserved, status: []change{withReason("n1", v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace)}, change: wanted()},
	"moves a reservation that was carved": {
		volume: reserved, status: []change{ready("n1")}, change: wanted("n3")},
	"moves a reservation that names the local driver": {
		volume: all(reserved, ofTheLocalDriver), change: wanted("n3")},
	"moves a reservation of another driver": {
		volume: all(reserved, ofAnotherDriver), change: wanted("n3"), refusal: onlyLocal, deletion: onlyLocal},
	"moves a marked Volume of a shared disk": {
		volume: all(reserved, shared), change: wanted("n3"), refusal: onlyLocal, deletion: onlyLocal},
	"moves a Volume of a shared disk that no node has answered": {
		volume: shared, change: wanted("n3"), refusal: onlyLocal, deletion: onlyLocal},
	"empties a reservation after a node found data": {
		volume: reserved, status: []change{all(ready("n1"), withReason("n1", v1alpha1.ReplicaReady, v1alpha1.ReasonFound))},
		change: wanted(), refusal: changesNoData, deletion: changesNoData},
	"empties a reservation after a node found data of the same name": {
		volume: reserved, status: []change{withReason("n1", v1alpha1.ReplicaFailed, v1alpha1.ReasonConflict)},
		change: wanted(), refusal: changesNoData, deletion: changesNoData},
	"empties a marked Volume that was adopted": {
		volume: all(reserved, adopted), change: wanted(), refusal: changesNoData, deletion: changesNoData},
	"makes a reservation a Volume": {
		volume: reserved, change: published, refusal: leavesTheMark},
	"places a Volume that no node could make": {
		status: []change{withReason("n1", v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace)}, change: wanted("n3")},
	"places a Volume that the node reports gone": {
		status: []change{ready("n1"), gone("n1")}, change: wanted("n3")},
	"makes a Volume a reservation": {
		change: reserved, refusal: leavesTheMark},
	"empties a Volume that is carved": {
		status: []change{ready("n1")}, change: wanted(), refusal: changesNoData, deletion: changesNoData},
	"empties a Volume that is being copied": {
		status: []change{copying("n1")}, change: wanted(), refusal: changesNoData, deletion: changesNoData},
	"empties a Volume whose replica failed": {
		status: []change{ready("n1"), entry("n1", func(r *v1alpha1.ReplicaStatus) { r.State, r.Ready = v1alpha1.ReplicaFailed, false })},
		change: wanted(), refusal: changesNoData, deletion: changesNoData},
	"empties a Volume after the node reports the device missing": {
		status: []change{withReason("n1", v1alpha1.ReplicaFailed, v1alpha1.ReasonDeviceMissing)},
		change: wanted(), refusal: changesNoData, deletion: changesNoData},
	"empties a Volume after a node found data of the same name": {
		status: []change{withReason("n1", v1alpha1.ReplicaFailed, v1alpha1.ReasonConflict)},
		change: wanted(), refusal: changesNoData, deletion: changesNoData},
	"empties a Volume that was adopted": {
		volume: adopted, change: wanted(), refusal: changesNoData, deletion: changesNoData},
	"grows a Volume that is carved": {
		status: []change{ready("n1")}, change: capacity("20Gi"), refusal: changesNoData, deletion: changesNoData},
}

// heardScheduler returns the scheduler's client, once the API server knows its role.
func heardScheduler(t *testing.T, env *apitest.Environment) client.Client {
	t.Helper()
	c := env.Scheduler(t)
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.List(ctx, &v1alpha1.VolumeList{}, client.Limit(1))
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestASchedulerTouchesNothingThatMayHaveData(t *testing.T) {
	env := apitest.Start(t)
	scheduler := heardScheduler(t, env)
	for name, tc := range schedulerCases {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			if tc.volume != nil {
				tc.volume(v)
			}
			v = live(t, env.Client, v, tc.status...)
			changed := v.DeepCopy()
			tc.change(changed)
			expect(t, scheduler.Update(t.Context(), changed), tc.refusal)
			expect(t, scheduler.Delete(t.Context(), v, client.DryRunAll), tc.deletion)
		})
	}
}

// The policy and the controller must count the same states as data.
func TestTheSchedulersPolicyAndTheControllerAgreeOnCarvedVolumes(t *testing.T) {
	env := apitest.Start(t)
	scheduler := heardScheduler(t, env)
	size := capacity("10Gi")
	for _, state := range []v1alpha1.ReplicaState{v1alpha1.ReplicaReady, v1alpha1.ReplicaCopying, v1alpha1.ReplicaFailed, v1alpha1.ReplicaGone} {
		for _, reason := range everyReason {
			t.Run(string(state)+" "+reason, func(t *testing.T) {
				v := live(t, env.Client, newVolume(t, size), withReason("n1", state, reason))
				refusal := ""
				if volumes.Carved(v) {
					refusal = changesNoData
				}
				expect(t, scheduler.Delete(t.Context(), v, client.DryRunAll), refusal)
				wanted("n3")(v)
				expect(t, scheduler.Update(t.Context(), v), refusal)
			})
		}
	}
}

// everyReason of a replica's state.
var everyReason = []string{
	v1alpha1.ReasonCarved, v1alpha1.ReasonFound, v1alpha1.ReasonCopying, v1alpha1.ReasonTaken, v1alpha1.ReasonNoSpace,
	v1alpha1.ReasonPoolMissing, v1alpha1.ReasonInvalid, v1alpha1.ReasonUnsupported, v1alpha1.ReasonConflict,
	v1alpha1.ReasonSourceMissing, v1alpha1.ReasonProvisionerError, v1alpha1.ReasonDeviceMissing, v1alpha1.ReasonInUse, v1alpha1.ReasonRemoved,
}

// schedulerCreations are Volumes that the scheduler tries to make.
var schedulerCreations = map[string]struct {
	change  change
	refusal string
}{
	"a reservation":                   {change: reserved},
	"a Volume":                        {change: published, refusal: onlyReservations},
	"a reservation of adopted data":   {change: all(reserved, adopted), refusal: adoptsNothing},
	"a reservation of another driver": {change: all(reserved, ofAnotherDriver), refusal: onlyLocal},
	"a reservation of a shared disk":  {change: all(reserved, shared), refusal: onlyLocal},
	"a Volume of data to be adopted":  {change: adopted, refusal: onlyReservations},
}

func TestASchedulerMakesReservationsAlone(t *testing.T) {
	env := apitest.Start(t)
	scheduler := heardScheduler(t, env)
	for name, tc := range schedulerCreations {
		t.Run(name, func(t *testing.T) {
			expect(t, scheduler.Create(t.Context(), newVolume(t, tc.change)), tc.refusal)
		})
	}
}
