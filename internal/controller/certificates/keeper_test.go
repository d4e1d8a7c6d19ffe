package certificates_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/certificates"
	"berth.dev/berth/internal/replicate/cert/issue"
)

func TestMain(m *testing.M) { apitest.Main(m) }

const day = 24 * time.Hour

// begun is the time of the tests. The API server does not look at it.
var begun = time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)

// keeper is the controllers' authority under a name of the test's own.
type keeper struct {
	*certificates.Keeper
	t     *testing.T
	clock *clocktesting.FakeClock
}

func newKeeper(t *testing.T, c client.Client, name string) *keeper {
	t.Helper()
	k := &keeper{t: t, clock: clocktesting.NewFakeClock(begun)}
	k.Keeper = &certificates.Keeper{
		Live: c, Client: c, Namespace: apitest.Namespace, Name: name, Instance: "test",
		Clock: k.clock, Random: rand.Reader, Log: logr.Discard(),
	}
	return k
}

// after looks at the authority when so much time has passed.
func (k *keeper) after(d time.Duration) issue.Authorities {
	k.t.Helper()
	k.clock.Step(d)
	a, err := k.Authorities(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	return a
}

func (k *keeper) secret() *corev1.Secret {
	k.t.Helper()
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name + certificates.SecretSuffix}}
	k.get(o)
	return o
}

func (k *keeper) published() *corev1.ConfigMap {
	k.t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name + certificates.ConfigMapSuffix}}
	k.get(o)
	return o
}

func (k *keeper) get(o client.Object) {
	k.t.Helper()
	if err := k.Client.Get(k.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		k.t.Fatal(err)
	}
}

func (k *keeper) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// refuses expects that there is no authority, for a reason that an event tells of.
func (k *keeper) refuses(reason string, says ...string) {
	k.t.Helper()
	_, err := k.Authorities(k.t.Context())
	if err == nil {
		k.t.Fatal("there is an authority")
	}
	for _, part := range says {
		if !strings.Contains(err.Error(), part) {
			k.t.Errorf("error %q lacks %q", err, part)
		}
	}
	var told corev1.EventList
	k.must(k.Client.List(k.t.Context(), &told, client.InNamespace(k.Namespace), client.MatchingFields{"involvedObject.name": k.Name + certificates.SecretSuffix}))
	if len(told.Items) != 1 || told.Items[0].Reason != reason {
		k.t.Errorf("%d events tell of the Secret, want one because of %s", len(told.Items), reason)
	}
}

func TestControllersThatBeginTogetherEndWithOneAuthority(t *testing.T) {
	c := apitest.Start(t).Client
	const controllers = 8
	seen := make([]issue.Authorities, controllers)
	var all sync.WaitGroup
	for i := range controllers {
		all.Go(func() {
			for seen[i] == nil && t.Context().Err() == nil { // who loses the race comes again
				seen[i], _ = newKeeper(t, c, "race").Authorities(t.Context())
			}
		})
	}
	all.Wait()
	k := newKeeper(t, c, "race")
	stored := string(k.secret().Data[certificates.RootsKey])
	for i, a := range seen {
		if len(a) != 1 || string(a.Roots()) != stored {
			t.Errorf("controller %d has another authority than the Secret", i)
		}
	}
	if got := k.published(); got.Data[certificates.RootsKey] != stored || len(got.Data) != 1 {
		t.Errorf("published is %v", got.Data)
	}
}

func TestAnAuthorityIsReplacedWithoutATimeInWhichACertificateIsNotTrusted(t *testing.T) {
	k := newKeeper(t, apitest.Start(t).Client, "rotation")
	first := k.after(0)
	version := k.secret().ResourceVersion
	if k.after(day); k.secret().ResourceVersion != version {
		t.Error("a controller that has nothing to do writes")
	}
	both := k.after(issue.AuthorityLifetime * 2 / 3)
	if string(both.Roots()) != k.published().Data[certificates.RootsKey] || len(both) != 2 {
		t.Fatalf("%d authorities, and not those that are published", len(both))
	}
	other := newKeeper(t, k.Client, "rotation") // which has just begun
	for after, want := range map[time.Duration]int{0: 0, day: 1} {
		other.clock.SetTime(k.clock.Now().Add(after))
		if signer, err := other.after(0).Signer(other.clock.Now()); err != nil || !signer.Certificate.Equal(both[want].Certificate) {
			t.Errorf("%s after the successor was made, authority %d does not sign: %v", after, want, err)
		}
	}
	if last := k.after(issue.AuthorityLifetime / 3); len(last) != 1 || !last[0].Certificate.Equal(both[1].Certificate) || first[0].Certificate.Equal(last[0].Certificate) {
		t.Errorf("%d authorities are left", len(last))
	}
}

func TestWhatIsPublishedFollowsTheSecretWhateverWasWrittenThere(t *testing.T) {
	k := newKeeper(t, apitest.Start(t).Client, "published")
	own := string(k.after(0).Roots())
	changed := k.published()
	changed.Data[certificates.RootsKey] += string(newKeeper(t, k.Client, "hostile").after(0).Roots())
	changed.Data["more"] = "x"
	k.must(k.Client.Update(t.Context(), changed))
	if k.after(0); k.published().Data[certificates.RootsKey] != own || len(k.published().Data) != 1 {
		t.Error("a foreign authority is published")
	}
	k.must(k.Client.Delete(t.Context(), k.published()))
	if k.after(0); k.published().Data[certificates.RootsKey] != own {
		t.Error("what was deleted is not published again")
	}
}

// shows compares the metric of one problem. The other problem is never there.
func shows(t *testing.T, k *certificates.Keeper, value int, reason string) {
	t.Helper()
	want := fmt.Sprintf("# HELP berth_authority_problem 1 while the authority of nodes' certificates has the problem, so that no node gets a certificate.\n"+
		"# TYPE berth_authority_problem gauge\nberth_authority_problem{reason=\"AuthorityDamaged\"} 0\nberth_authority_problem{reason=%q} %d\n", reason, value)
	if err := testutil.CollectAndCompare(k, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestAnAuthorityThatIsLostIsNotReplacedWhileItsCertificatesMayLive(t *testing.T) {
	k := newKeeper(t, apitest.Start(t).Client, "lost")
	own := k.after(0)
	kept := k.secret()
	k.must(k.Client.Delete(t.Context(), k.secret()))
	for range 2 {
		k.refuses(certificates.ReasonAuthorityLost, "Secret berth-system/lost-authority is gone", "Restore")
	}
	shows(t, k.Keeper, 1, certificates.ReasonAuthorityLost)
	if k.published().Data[certificates.RootsKey] != string(own.Roots()) {
		t.Error("the authorities that nodes know are gone, too")
	}
	if roots, err := k.Roots(); err != nil || !roots.Equal(own.Pool()) {
		t.Errorf("a controller that runs does not know them any more: %v", err)
	}
	restored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: kept.Namespace, Name: kept.Name}, Data: kept.Data}
	k.must(k.Client.Create(t.Context(), restored))
	if got := k.after(0); string(got.Roots()) != string(own.Roots()) {
		t.Error("what was restored is not used")
	}
	shows(t, k.Keeper, 0, certificates.ReasonAuthorityLost)
	k.must(errors.Join(k.Client.Delete(t.Context(), k.secret()), k.Client.Delete(t.Context(), k.published())))
	if got := k.after(0); string(got.Roots()) == string(own.Roots()) {
		t.Error("an administrator who deletes both does not begin anew")
	}
}

func TestAnAuthorityThatIsLostAndHasExpiredIsReplaced(t *testing.T) {
	k := newKeeper(t, apitest.Start(t).Client, "expired")
	k.after(0)
	k.must(k.Client.Delete(t.Context(), k.secret()))
	if got := k.after(issue.AuthorityLifetime); len(got) != 1 {
		t.Errorf("there are %d authorities", len(got))
	}
}

func TestAnAuthorityThatIsDamagedIsLeftAsItIs(t *testing.T) {
	c := apitest.Start(t).Client
	other := newKeeper(t, c, "damage-other")
	other.after(0)
	for name, damage := range map[string]func(*corev1.Secret){
		"no-key":      func(s *corev1.Secret) { delete(s.Data, "ca.key") },
		"cut":         func(s *corev1.Secret) { s.Data["ca.crt"] = s.Data["ca.crt"][:99] },
		"another-key": func(s *corev1.Secret) { s.Data["ca.key"] = other.secret().Data["ca.key"] },
		"empty":       func(s *corev1.Secret) { s.Data = nil },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t, c, "damaged-"+name)
			own := k.after(0)
			damaged := k.secret()
			damage(damaged)
			k.must(c.Update(t.Context(), damaged))
			k.refuses(certificates.ReasonAuthorityDamaged, "Restore")
			if k.secret().ResourceVersion != damaged.ResourceVersion || k.published().Data[certificates.RootsKey] != string(own.Roots()) {
				t.Error("it was written to")
			}
		})
	}
}
