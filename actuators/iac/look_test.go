package iac

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

// withInstanceCheck are pieces of the kubemark module to replace, so that it looks at its instances
// every eight minutes.
var withInstanceCheck = []string{"  inventory: {}\n", "  inventory: {}\n  instanceCheck: {intervalSeconds: 480}\n"}

// watched makes credentials that lead through a proxy, and returns what takes the requests about a
// Node since it was called last.
func (b *bench) watched() (proxy *apiproxy.Proxy, requests func(node string) []string) {
	b.t.Helper()
	proxy, err := apiproxy.Open(plane.Config.Host, plane.Config.CAData)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(proxy.Close)
	var mu sync.Mutex
	var seen []string
	proxy.Audit(func(request *http.Request, _ int) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, request.Method+" "+request.URL.Path)
	})
	b.secret("watched", func(secret *corev1.Secret) {
		secret.Data["server"], secret.Data["ca.crt"] = []byte(proxy.Address()), proxy.Authority()
	})
	return proxy, func(node string) []string {
		mu.Lock()
		defer mu.Unlock()
		var of []string
		for _, request := range seen {
			if strings.HasSuffix(request, "/nodes/"+node) {
				of = append(of, request)
			}
		}
		seen = nil
		return of
	}
}

// stateVersion returns the resource version of the Secret with a Machine's state.
func (b *bench) stateVersion(machine *machinev1beta1.Machine) string {
	b.t.Helper()
	snapshot, err := b.store.Get(b.t.Context(), state.KeyFor(machine.Namespace, machine.UID))
	if err != nil {
		b.t.Fatal(err)
	}
	return snapshot.ResourceVersion
}

// looked drives a Machine until a look at its instance that is due was made.
func (b *bench) looked(machine *machinev1beta1.Machine) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		if err := b.Update(b.t.Context(), machine); err != nil {
			b.t.Fatal(err)
		}
		look := b.looks.Known(machine.UID)
		_, active := b.pool.Status(runs.Key("look-" + machine.UID))
		if !active && look.Made && look.Since.Equal(b.clock.Now()) {
			return
		}
	}
	b.t.Fatal("the instance was not looked at")
}

func TestAnInstanceThatIsGoneIsNoticedBetweenDriftChecks(t *testing.T) {
	b := newBench(t)
	b.upgrade(changedModule(t, "", withInstanceCheck...), "owner-1")
	_, requests := b.watched()
	machine := b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "watched"} })
	b.bring(machine)
	requests(machine.Name)
	before := b.stateVersion(machine)

	if after := b.RecheckAfter(machine); after < 7*time.Minute || after > 528*time.Second {
		t.Errorf("the Machine is to be reconciled after %s, want 8 minutes, a tenth more or less", after)
	}
	b.later(9 * time.Minute)
	b.looked(machine)
	if got := requests(machine.Name); len(got) != 1 || !strings.HasPrefix(got[0], http.MethodGet) {
		t.Errorf("a look made the requests %q, want one GET", got)
	}
	if _, unchanged := b.Unchanged(t.Context(), machine); !unchanged {
		t.Error("the Machine has changed although a look has found its instance")
	}
	if b.stateVersion(machine) != before {
		t.Error("a look that found the instance has written its state")
	}
	if after := b.RecheckAfter(machine); after < 7*time.Minute || after > 528*time.Second {
		t.Errorf("after a look the Machine is to be reconciled after %s, want 8 minutes, a tenth more or less", after)
	}

	if err := b.client.Delete(t.Context(), b.node(machine)); err != nil {
		t.Fatal(err)
	}
	b.later(9 * time.Minute)
	for range 2 { // of which the second finds nothing to do while the look is under way
		if err := b.Update(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(patience); b.looks.Known(machine.UID).Gone.IsZero(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatal("no look has found the instance missing")
		}
	}
	if _, unchanged := b.Unchanged(t.Context(), machine); unchanged {
		t.Error("the Machine is unchanged although its instance was not found")
	}
	for deadline := time.Now().Add(patience); b.record(machine).Check.Result != record.DriftMissing; time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatal("no drift check has found the instance missing")
		}
		_ = b.Update(t.Context(), machine) // the check is due at once
	}
	if there, err := b.Exists(t.Context(), machine); there || err != nil {
		t.Errorf("Exists returns %t, %v; want that the instance is gone", there, err)
	}
}

func TestALookThatFailsSaysNothing(t *testing.T) {
	b := newBench(t)
	b.upgrade(changedModule(t, "", withInstanceCheck...), "owner-1")
	proxy, _ := b.watched()
	machine := b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "watched"} })
	b.bring(machine)
	before := b.record(machine)
	proxy.Close()
	b.later(9 * time.Minute)
	b.looked(machine)
	if look := b.looks.Known(machine.UID); !look.Gone.IsZero() {
		t.Errorf("the instance counts as gone since %s", look.Gone)
	}
	if after := b.record(machine); after.Check.At != before.Check.At {
		t.Error("a look that failed had the drift checked")
	}
	if sent := b.warnings(); len(sent) > 0 {
		t.Errorf("it sent the events %q", sent)
	}
}

func TestALookAsksForTheServerAlone(t *testing.T) {
	c := newCloud(t)
	machine := c.machine()
	c.bring(machine)
	var mu sync.Mutex
	var seen []string
	c.Obstruct(openstack.Obstacle{Match: func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasSuffix(r.URL.Path, "/auth/tokens") {
			seen = append(seen, r.Method+" "+r.URL.Path)
		}
		return false // it stands in nobody's way
	}})
	requests := func() []string {
		mu.Lock()
		defer mu.Unlock()
		taken := seen
		seen = nil
		return taken
	}
	c.later(9 * time.Minute)
	c.looked(machine)
	look := requests()
	c.check(machine)
	check := requests()
	t.Logf("a look makes %d requests, a drift check %d: %q, %q", len(look), len(check), look, check)
	if len(look) == 0 || len(look) > 4 || len(check) > 6 {
		t.Errorf("a look makes %d requests, a drift check %d; want 4 and 6 at most", len(look), len(check))
	}
	for _, request := range look {
		if !strings.HasPrefix(request, http.MethodGet+" ") || strings.Contains(request, "/ports") || strings.Contains(request, "/networks") {
			t.Errorf("a look makes the request %s, which asks for more than the server", request)
		}
	}
}

// A drift check plans the whole module, which may read what is not there any more. An instance that
// is gone is noticed all the same.
func TestAnInstanceIsWatchedWithoutWhatItsModuleReads(t *testing.T) {
	b := newBench(t)
	template := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-template"}}
	if err := plane.Create(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	b.upgrade(changedModule(t, `
data "kubectl_objects" "template" {
  api_version    = "v1"
  resource       = "nodes"
  field_selector = "metadata.name=`+template.Name+`"

  lifecycle {
    postcondition {
      condition     = length(self.objects) == 1
      error_message = "There is no template."
    }
  }
}
`, withInstanceCheck...), "owner-2")
	machine := b.machine()
	b.bring(machine)
	if err := b.client.Delete(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	b.later(2 * time.Hour)
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		if err := b.drive(b.Update, machine); err != nil {
			t.Fatalf("Update: %v, want nothing to be asked for", err)
		}
		if run, _ := b.pool.Status(runs.Key(machine.UID)); run.Phase == runs.Failed {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no drift check has failed")
		}
	}
	if there, err := b.Exists(t.Context(), machine); !there || err != nil {
		t.Fatalf("Exists: %t, %v; want an instance that no check has found missing", there, err)
	}
	b.noticed(machine)
	if found := b.record(machine).Check; !strings.Contains(found.Summary, "There is no template.") {
		t.Errorf("the check found %+v, want it to say what it could not compare", found)
	}
}
