package record_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// object is the Volume whose spec and metadata have the record's parameters.
func object(v *ownership.Volume) *v1alpha1.Volume {
	o := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "vol-a", ResourceVersion: "7"}}
	o.Spec.Capacity = *resource.NewQuantity(v.Size, resource.BinarySI)
	o.Spec.Replication = v1alpha1.Replication{Factor: int32(v.Factor), Kind: v1alpha1.ReplicationSnapshots,
		Failover: &v1alpha1.Failover{Automatic: v.Failover.Automatic}}
	if v.Failover.MaxDataLoss != 0 {
		o.Spec.Replication.Failover.MaxDataLoss = &metav1.Duration{Duration: v.Failover.MaxDataLoss}
	}
	if v.Kind.Traits().Attaches {
		o.Spec.Replication.Kind = v1alpha1.ReplicationAttachments
		o.Spec.Replication.Attachments = &v1alpha1.Attachments{MaxShares: int32(v.Sharing.MaxShares), Yields: v.Sharing.Yields, Persistent: v.Sharing.Persistent,
			Disk: &v1alpha1.SharedDisk{Handle: "sim:///a", Identity: "a"}}
	}
	if v.Deleting {
		o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return o
}

// throughTheAPI is what the next reader gets: JSON there and back.
func throughTheAPI(t interface{ Fatal(...any) }, v *v1alpha1.Volume) *v1alpha1.Volume {
	body, err := json.Marshal(v)
	read := &v1alpha1.Volume{}
	if err := errors.Join(err, json.Unmarshal(body, read)); err != nil {
		t.Fatal(err)
	}
	return read
}

func small() *ownership.Volume {
	e := lineage.Epoch{Number: 3, ID: "three"}
	return &ownership.Volume{Kind: ownership.Snapshots, Factor: 2, Size: 1 << 30, Epoch: e, RecoveryPoint: lineage.Point{Epoch: e, Seq: 9}, Clean: true,
		Primary: ownership.Primary{Node: "a", Boot: "boot1"}, Lineage: lineage.Lineage{{Epoch: e}},
		Replicas: []ownership.Replica{{Node: "a", State: ownership.Ready, Point: lineage.Point{Epoch: e, Seq: 9}}, {Node: "b"}}}
}

func drawn(t *rapid.T) *ownership.Volume {
	number := rapid.Uint64Range(1, 1<<30-1)
	id := rapid.StringMatching(`[a-z0-9]{1,64}`)
	epoch := rapid.Custom(func(t *rapid.T) lineage.Epoch {
		return lineage.Epoch{Number: number.Draw(t, "number"), ID: id.Draw(t, "id")}
	})
	point := rapid.Custom(func(t *rapid.T) lineage.Point {
		return lineage.Point{Epoch: epoch.Draw(t, "epoch"), Seq: rapid.Uint64Range(1, 1<<53-1).Draw(t, "seq")}
	})
	maybePoint := rapid.OneOf(rapid.Just(lineage.Point{}), point)
	maybeEpoch := rapid.OneOf(rapid.Just(lineage.Epoch{}), epoch)
	node := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?`)
	clock := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "never") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(-1<<33, 1<<36).Draw(t, "seconds"), 0).UTC()
	})
	v := &ownership.Volume{
		Kind: ownership.Snapshots, Factor: rapid.IntRange(1, 8).Draw(t, "factor"), Size: rapid.Int64Range(1, 1<<60).Draw(t, "size"), Deleting: rapid.Bool().Draw(t, "deleting"),
		Primary: ownership.Primary{Node: node.Draw(t, "primary"), Boot: id.Draw(t, "boot"), Phase: rapid.SampledFrom([]ownership.Phase{
			ownership.Released, ownership.Preparing, ownership.Active, ownership.Fenced}).Draw(t, "phase")},
		RecoveryPoint: maybePoint.Draw(t, "recovery point"), Clean: rapid.Bool().Draw(t, "clean"), ExpireAt: clock.Draw(t, "expiry"),
		Failover: ownership.Failover{Automatic: rapid.Bool().Draw(t, "automatic"), Approved: maybePoint.Draw(t, "approved"),
			MaxDataLoss: time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "loss"))},
	}
	if rapid.Bool().Draw(t, "attaches") {
		v.Kind = ownership.Attachments
		v.Sharing = ownership.Sharing{MaxShares: rapid.IntRange(1, 8).Draw(t, "shares"), Yields: rapid.Bool().Draw(t, "yields"), Persistent: rapid.Bool().Draw(t, "persistent")}
	}
	for range rapid.IntRange(1, lineage.MaxBranches).Draw(t, "epochs") {
		v.Lineage = append(v.Lineage, lineage.Branch{Epoch: epoch.Draw(t, "epoch"), From: maybePoint.Draw(t, "from")})
	}
	v.Epoch = v.Lineage.Head()
	for range rapid.IntRange(0, 8).Draw(t, "losses") {
		v.Losses = append(v.Losses, ownership.Loss{Epoch: epoch.Draw(t, "epoch"), Kept: point.Draw(t, "kept"), Known: maybePoint.Draw(t, "known")})
	}
	for range rapid.IntRange(0, 8).Draw(t, "keys") {
		v.Keys = append(v.Keys, ownership.Key{Node: node.Draw(t, "node"), Epoch: epoch.Draw(t, "epoch"), Fence: rapid.Bool().Draw(t, "fence")})
	}
	if rapid.Bool().Draw(t, "fence requested") {
		v.FenceRequest = ownership.FenceRequest{Executor: node.Draw(t, "executor"), Epoch: v.Epoch}
	}
	if !v.Primary.Phase.Open() && rapid.Bool().Draw(t, "never owned") {
		v.Primary.Node = ""
	}
	for _, n := range rapid.SliceOfNDistinct(node, 0, 8, func(s string) string { return s }).Draw(t, "entries") {
		v.Replicas = append(v.Replicas, ownership.Replica{Node: n, State: ownership.State(rapid.IntRange(0, int(ownership.Gone)).Draw(t, "state")),
			Point: maybePoint.Draw(t, "point"), Unstaged: maybeEpoch.Draw(t, "unstaged"), Fenced: maybeEpoch.Draw(t, "fenced"),
			Tries: rapid.IntRange(0, 1000).Draw(t, "tries"), RetryAt: clock.Draw(t, "retry")})
	}
	slices.SortFunc(v.Replicas, func(a, b ownership.Replica) int { return cmp.Compare(a.Node, b.Node) })
	return v
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawn(t)
		written, err := record.Into(object(want), want)
		if err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(written.Spec, object(want).Spec) {
			t.Fatalf("the spec has become %+v", written.Spec)
		}
		got, err := record.Read("vol-a", throughTheAPI(t, written), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("the record changed on the way (-written +read):\n%s", diff)
		}
		again, err := record.Into(written, got)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(written, again); diff != "" {
			t.Fatalf("writing what was read changes the object (-before +after):\n%s", diff)
		}
	})
}

func TestWritingARecordLeavesTheObjectThatWasReadAlone(t *testing.T) {
	v := small()
	read, err := record.Into(object(v), v)
	if err != nil {
		t.Fatal(err)
	}
	before := read.DeepCopy()
	v.Clean = false
	next, err := record.Into(read, v)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(before, read); diff != "" {
		t.Errorf("the object changed (-before +after):\n%s", diff)
	}
	if next.ResourceVersion != "7" {
		t.Error("the write does not compare the version that was read")
	}
}

func TestADeadlineNeverComesEarlier(t *testing.T) {
	v := small()
	v.ExpireAt = time.Unix(100, 1).UTC()
	written, err := record.Into(object(v), v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := record.From(throughTheAPI(t, written))
	if err != nil || !got.ExpireAt.Equal(time.Unix(101, 0)) {
		t.Errorf("100.000000001 s became %v, %v", got.ExpireAt, err)
	}
}

// malformed are objects that no rule writes.
var malformed = map[string]struct {
	change func(*v1alpha1.Volume)
	says   string
}{
	"an unknown kind":              {func(v *v1alpha1.Volume) { v.Spec.Replication.Kind = "Mirrors" }, `spec.replication.kind is "Mirrors", which is unknown`},
	"an unknown phase":             {func(v *v1alpha1.Volume) { v.Status.Ownership.Primary.Phase = "Purple" }, "primary.phase"},
	"an unknown state":             {func(v *v1alpha1.Volume) { v.Status.Ownership.Replicas[0].State = "Purple" }, "replicas.state"},
	"an epoch of zero":             {func(v *v1alpha1.Volume) { v.Status.Ownership.Epoch.Number = 0 }, "epoch.number is 0"},
	"a negative epoch":             {func(v *v1alpha1.Volume) { v.Status.Ownership.Epoch.Number = -1 }, "epoch.number is -1"},
	"an epoch beyond a disk's key": {func(v *v1alpha1.Volume) { v.Status.Ownership.Epoch.Number = 1 << 30 }, "epoch.number is 1073741824"},
	"an epoch without an id":       {func(v *v1alpha1.Volume) { v.Status.Ownership.Epoch.ID = "" }, "epoch.id is empty"},
	"an endless id":                {func(v *v1alpha1.Volume) { v.Status.Ownership.Epoch.ID = strings.Repeat("x", 65) }, "epoch.id has 65 bytes"},
	"no lineage":                   {func(v *v1alpha1.Volume) { v.Status.Ownership.Lineage = nil }, "lineage is empty"},
	"a lineage of another epoch":   {func(v *v1alpha1.Volume) { v.Status.Ownership.Lineage[0].Epoch.Number = 2 }, "the last epoch of the lineage"},
	"an endless lineage": {func(v *v1alpha1.Volume) {
		v.Status.Ownership.Lineage = make([]v1alpha1.Branch, lineage.MaxBranches+1)
	}, "lineage has 33 items"},
	"endless losses":            {func(v *v1alpha1.Volume) { v.Status.Ownership.Losses = make([]v1alpha1.Loss, 9) }, "losses has 9 items"},
	"endless keys":              {func(v *v1alpha1.Volume) { v.Status.Ownership.Keys = make([]v1alpha1.ReservationKey, 9) }, "keys has 9 items"},
	"endless entries":           {func(v *v1alpha1.Volume) { v.Status.Ownership.Replicas = make([]v1alpha1.OwnedReplica, 9) }, "replicas has 9 items"},
	"two entries of a node":     {func(v *v1alpha1.Volume) { v.Status.Ownership.Replicas[1].Node = "a" }, "node a has two entries"},
	"an entry of no node":       {func(v *v1alpha1.Volume) { v.Status.Ownership.Replicas[0].Node = "" }, "replicas.node is empty"},
	"an owner without a name":   {func(v *v1alpha1.Volume) { v.Status.Ownership.Primary = v1alpha1.Primary{Phase: v1alpha1.PrimaryActive} }, "no node is named"},
	"a snapshot of number zero": {func(v *v1alpha1.Volume) { v.Status.Ownership.RecoveryPoint.Seq = 0 }, "recoveryPoint.seq is 0"},
	"a factor of zero":          {func(v *v1alpha1.Volume) { v.Spec.Replication.Factor = 0 }, "spec.replication.factor is 0"},
	"a size beyond all":         {func(v *v1alpha1.Volume) { v.Spec.Capacity = resource.MustParse("2Ei") }, "spec.capacity is"},
	"a negative loss": {func(v *v1alpha1.Volume) {
		v.Spec.Replication.Failover.MaxDataLoss = &metav1.Duration{Duration: -time.Second}
	}, "maxDataLoss is negative"},
	"tries without end":     {func(v *v1alpha1.Volume) { v.Status.Ownership.Replicas[0].Tries = 1000001 }, "replicas.tries is 1000001"},
	"fewer tries than none": {func(v *v1alpha1.Volume) { v.Status.Ownership.Replicas[0].Tries = -1 }, "replicas.tries is -1"},
	"a deadline in the year 0": {func(v *v1alpha1.Volume) {
		v.Status.Ownership.ExpireAt = &metav1.Time{Time: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)}
	}, "expireAt is in the year 0"},
	"shares of no disk": {func(v *v1alpha1.Volume) {
		v.Spec.Replication.Kind, v.Spec.Replication.Attachments = v1alpha1.ReplicationAttachments, &v1alpha1.Attachments{}
	}, "maxShares is 0"},
	"copies with shares": {func(v *v1alpha1.Volume) {
		v.Spec.Replication.Attachments = &v1alpha1.Attachments{MaxShares: 2}
	}, "attachments is for kind Attachments"},
}

func TestAMalformedRecordIsUnreadAndNeverAbsent(t *testing.T) {
	for name, tc := range malformed {
		t.Run(name, func(t *testing.T) {
			v, err := record.Into(object(small()), small())
			if err != nil {
				t.Fatal(err)
			}
			tc.change(v)
			got, err := record.From(v)
			var unread *record.UnreadError
			if got != nil || !errors.As(err, &unread) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("From() = %v, %v, want an Unread that says %q", got, err, tc.says)
			}
			var f ownership.NodeFacts
			if record.Tell(&f, got, err); f.Absent || f.Record != nil {
				t.Errorf("the rules are told: absent %t, record %v", f.Absent, f.Record)
			}
		})
	}
}

func TestEntriesAreReadInTheOrderThatTheRulesRelyOn(t *testing.T) {
	v, err := record.Into(object(small()), small())
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(v.Status.Ownership.Replicas)
	got, err := record.From(v)
	if diff := gocmp.Diff(small(), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

var unwritable = map[string]func(*ownership.Volume){
	"another factor":                func(v *ownership.Volume) { v.Factor = 3 },
	"another size":                  func(v *ownership.Volume) { v.Size++ },
	"another kind":                  func(v *ownership.Volume) { v.Kind = ownership.Attachments },
	"a kind that is none":           func(v *ownership.Volume) { v.Kind = 17 },
	"one copy where there are more": func(v *ownership.Volume) { v.Kind = ownership.OneCopy },
	"the decision to destroy":       func(v *ownership.Volume) { v.Deleting = true },
	"another policy":                func(v *ownership.Volume) { v.Failover.Automatic = true },
	"another loss allowed":          func(v *ownership.Volume) { v.Failover.MaxDataLoss++ },
	"other shares":                  func(v *ownership.Volume) { v.Sharing.MaxShares++ },
	"a deadline beyond JSON":        func(v *ownership.Volume) { v.ExpireAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	"a phase that is none":          func(v *ownership.Volume) { v.Primary.Phase = 17 },
	"a state that is none":          func(v *ownership.Volume) { v.Replicas[0].State = -1 },
	"no epoch":                      func(v *ownership.Volume) { v.Epoch = lineage.Epoch{} },
	"an epoch beyond the keys":      func(v *ownership.Volume) { v.Epoch.Number, v.Lineage[0].Epoch.Number = 1<<30, 1<<30 },
	"a snapshot beyond JSON":        func(v *ownership.Volume) { v.RecoveryPoint.Seq = 1 << 53 },
	"a snapshot of no epoch":        func(v *ownership.Volume) { v.RecoveryPoint.Epoch = lineage.Epoch{} },
	"a loss that kept nothing":      func(v *ownership.Volume) { v.Losses = []ownership.Loss{{Epoch: v.Epoch}} },
	"more losses than there is room": func(v *ownership.Volume) {
		v.Losses = slices.Repeat([]ownership.Loss{{Epoch: v.Epoch, Kept: v.RecoveryPoint}}, 9)
	},
	"entries out of order": func(v *ownership.Volume) { slices.Reverse(v.Replicas) },
	"tries without end":    func(v *ownership.Volume) { v.Replicas[0].Tries = 1 << 40 },
}

func TestARecordThatTheAPIWouldNotHoldIsNotWritten(t *testing.T) {
	for name, change := range unwritable {
		t.Run(name, func(t *testing.T) {
			v := small()
			change(v)
			if got, err := record.Into(object(small()), v); err == nil {
				t.Errorf("it was written as %+v", got.Status.Ownership)
			}
		})
	}
	alone, v := object(small()), small()
	alone.Spec.Replication.Kind, v.Kind = "", ownership.OneCopy
	if got, err := record.Into(alone, v); err == nil {
		t.Errorf("a record of a volume with one copy was written as %+v", got.Status.Ownership)
	}
}

func TestATimeThatIsNeverIsNotWritten(t *testing.T) {
	written, err := record.Into(object(small()), small())
	if err != nil {
		t.Fatal(err)
	}
	if o := written.Status.Ownership; o.ExpireAt != nil || o.Replicas[0].RetryAt != nil {
		t.Errorf("it expires at %v, and is tried again at %v", o.ExpireAt, o.Replicas[0].RetryAt)
	}
}

func TestTheParametersOfAVolumeAreThereBeforeItsFirstRecord(t *testing.T) {
	want := ownership.Volume{Kind: ownership.Snapshots, Factor: 3, Size: 1 << 30, Failover: ownership.Failover{Automatic: true, MaxDataLoss: time.Minute}}
	got, err := record.Parameters(object(&want))
	if err != nil || !gocmp.Equal(&want, got) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	o := object(&want)
	o.Spec.Replication.Factor = 99
	var unread *record.UnreadError
	if _, err := record.Parameters(o); !errors.As(err, &unread) {
		t.Errorf("a factor that no rule knows: %v", err)
	}
	o.Spec.Replication = v1alpha1.Replication{Factor: 1}
	var one *record.OneCopyError
	if _, err := record.Parameters(o); !errors.As(err, &one) {
		t.Errorf("a volume with one copy: %v", err)
	}
}

func TestAWordOfTheAPIIsAKindOrUnknown(t *testing.T) {
	if kind, ok := record.KindOf(v1alpha1.ReplicationAttachments); kind != ownership.Attachments || !ok {
		t.Errorf("attachments are %v, %v", kind, ok)
	}
	if kind, ok := record.KindOf("Mirrors"); ok {
		t.Errorf("a word that is unknown is %v", kind)
	}
}

func TestAnAnswerOfTheAPIIsARecordOrOneOfThreeThings(t *testing.T) {
	volumes := schema.GroupResource{Group: "berth.dev", Resource: "volumes"}
	full, err := record.Into(object(small()), small())
	if err != nil {
		t.Fatal(err)
	}
	other := full.DeepCopy()
	other.Name = "vol-b"
	away := apierrors.NewServiceUnavailable("away")
	tests := map[string]struct {
		volume *v1alpha1.Volume
		err    error
		want   any
		absent bool
	}{
		"a record":                       {volume: full},
		"no object":                      {err: apierrors.NewNotFound(volumes, "vol-a"), want: new(*record.AbsentError), absent: true},
		"no object, wrapped":             {err: fmt.Errorf("reading: %w", apierrors.NewNotFound(volumes, "vol-a")), want: new(*record.AbsentError), absent: true},
		"an object before its record":    {volume: object(small()), want: new(*record.AbsentError), absent: true},
		"no such kind at the server":     {err: apierrors.NewGenericServerResponse(404, "get", volumes, "vol-a", "404 page not found", 0, true), want: new(*record.UnreadError)},
		"a server that is away":          {err: away, want: new(*record.UnreadError)},
		"an object and an error":         {volume: full, err: away, want: new(*record.UnreadError)},
		"a timeout":                      {err: apierrors.NewTimeoutError("slow", 1), want: new(*record.UnreadError)},
		"a refusal":                      {err: apierrors.NewForbidden(volumes, "vol-a", errors.New("no")), want: new(*record.UnreadError)},
		"neither an object nor an error": {want: new(*record.UnreadError)},
		"another object":                 {volume: other, want: new(*record.UnreadError)},
		"one copy": {want: new(*record.OneCopyError), volume: &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "vol-a"},
			Spec: v1alpha1.VolumeSpec{Replication: v1alpha1.Replication{Factor: 1}}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := record.Read("vol-a", tc.volume, tc.err)
			if tc.want == nil {
				if err != nil || got == nil {
					t.Fatalf("Read() = %v, %v", got, err)
				}
			} else if got != nil || !errors.As(err, tc.want) {
				t.Fatalf("Read() = %v, %v, want %T", got, err, tc.want)
			}
			if tc.err != nil && !tc.absent && !errors.Is(err, tc.err) {
				t.Errorf("Read() = %v, which hides %v", err, tc.err)
			}
			f := ownership.NodeFacts{Record: small()}
			record.Tell(&f, got, err)
			if f.Absent != tc.absent || (f.Record != nil) != (tc.want == nil) {
				t.Errorf("the rules are told: absent %t, record %v", f.Absent, f.Record)
			}
		})
	}
}
