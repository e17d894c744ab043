package driver

import (
	"context"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type outcome struct {
	response *driver.CreateMachineResponse
	err      error
}

// creating calls CreateMachine in the background.
func (w *world) creating(of *mcm.Machine) <-chan outcome {
	ended := make(chan outcome, 1)
	go func() {
		response, err := w.driver.CreateMachine(w.Context(), &driver.CreateMachineRequest{Machine: of, MachineClass: w.class, Secret: w.secret})
		ended <- outcome{response, err}
	}()
	return ended
}

func (w *world) ended(from <-chan outcome) outcome {
	w.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
		w.Fatal("CreateMachine has not returned")
		return outcome{}
	}
}

func (w *world) waiting(from <-chan outcome) {
	w.Helper()
	select {
	case got := <-from:
		w.Fatalf("CreateMachine has returned %v, %v", got.response, got.err)
	case <-time.After(time.Second):
	}
}

func (w *world) status(of *mcm.Machine) (*driver.GetMachineStatusResponse, codes.Code) {
	w.Helper()
	response, err := w.driver.GetMachineStatus(w.Context(), &driver.GetMachineStatusRequest{Machine: of, MachineClass: w.class, Secret: w.secret})
	return response, codeOf(err)
}

func (w *world) listed() map[string]string {
	w.Helper()
	response, err := w.driver.ListMachines(w.Context(), &driver.ListMachinesRequest{MachineClass: w.class, Secret: w.secret})
	if err != nil {
		w.Fatal(err)
	}
	return response.MachineList
}

func TestACreateIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	of := w.ordered("m", time.Hour)
	if _, code := w.status(of); code != codes.NotFound {
		t.Errorf("the status before the create is %v, want NotFound", code)
	}
	creating := w.creating(of)
	stored := w.stored(t.Context(), "m")
	w.waiting(creating)
	if _, code := w.status(of); code != codes.NotFound {
		t.Errorf("the status during the create is %v, want NotFound", code)
	}
	if got := w.listed(); len(got) != 0 {
		t.Errorf("%v is listed during the create", got)
	}
	w.failedWith("m", "Throttled", "InsufficientResources", "Rate exceeded")
	w.waiting(creating)
	w.made("m")
	got := w.ended(creating)
	if got.err != nil || got.response.ProviderID != "kubemark://m" || got.response.NodeName != "host-m" || len(got.response.Addresses) != 2 {
		t.Errorf("CreateMachine returns %+v, %v", got.response, got.err)
	}
	if response, code := w.status(of); code != codes.OK || response.ProviderID != "kubemark://m" {
		t.Errorf("the status is %+v, %v", response, code)
	}
	if diff := cmp.Diff(map[string]string{"kubemark://m": "m"}, w.listed()); diff != "" {
		t.Errorf("the list differs (-want +got):\n%s", diff)
	}
	if _, err := w.driver.InitializeMachine(t.Context(), &driver.InitializeMachineRequest{Machine: of, MachineClass: w.class, Secret: w.secret}); err != nil {
		t.Errorf("InitializeMachine returns %v", err)
	}
	secret, err := client.Resource(secrets).Namespace(w.namespace).Get(t.Context(), "m-user-data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if owner := secret.GetOwnerReferences(); len(owner) != 1 || owner[0].UID != stored.UID {
		t.Errorf("the user data belong to %v, want Machine %s", owner, stored.UID)
	}
	if stored.Annotations[annotationDrain] != "" || !stored.belongsTo(of) {
		t.Errorf("the Machine is %+v", stored.ObjectMeta)
	}
}

func TestAFailureThatOnlyOthersResolveIsReturnedAtOnce(t *testing.T) {
	w := newWorld(t)
	of := w.ordered("m", time.Hour)
	creating := w.creating(of)
	w.stored(t.Context(), "m")
	w.failedWith("m", "Quota", "InsufficientResources", "QuotaExceeded: [cores]")
	got := w.ended(creating)
	if codeOf(got.err) != codes.ResourceExhausted {
		t.Errorf("CreateMachine returns %v", got.err)
	}
	if got.response == nil || got.response.LastKnownState != "phase Provisioning, last failure Quota in Create" {
		t.Errorf("the last known state is in %+v", got.response)
	}
	if got := w.ended(w.creating(of)); codeOf(got.err) != codes.ResourceExhausted {
		t.Errorf("the second CreateMachine returns %v", got.err)
	}
	// The manager tries again.
	w.report("m", `{"status":{"providerStatus":{"run":{"operation":"Create"}}}}`, "")
	again := w.creating(of)
	w.waiting(again)
	w.made("m")
	if got := w.ended(again); got.err != nil {
		t.Errorf("the third CreateMachine returns %v", got.err)
	}
}

func TestACorrectedClassReachesAMachineWithoutInstance(t *testing.T) {
	w := newWorld(t)
	of := w.ordered("m", time.Hour)
	creating := w.creating(of)
	stored := w.stored(t.Context(), "m")
	w.report("m", `{"status":{"phase":"Failed","errorReason":"InvalidConfiguration","errorMessage":"provider_spec.cpu: it must be positive"}}`,
		`{"metadata":{"annotations":{"`+annotationFailedGeneration+`":"1"}}}`)
	got := w.ended(creating)
	if codeOf(got.err) != codes.InvalidArgument || !strings.Contains(got.err.Error(), "provider_spec.cpu") {
		t.Errorf("CreateMachine returns %v", got.err)
	}
	w.class.ProviderSpec.Raw = []byte(strings.Replace(kubemark, `"cpu":2`, `"memory":"4Gi"`, 1))
	creating = w.creating(of)
	w.waiting(creating)
	value := w.stored(t.Context(), "m").Spec.ProviderSpec.Value
	if _, kept := value["cpu"]; kept || value["memory"] != "4Gi" {
		t.Errorf("the providerSpec is %v", value)
	}
	w.made("m")
	if got := w.ended(creating); got.err != nil {
		t.Error(got.err)
	}
	w.class.ProviderSpec.Raw = []byte(kubemark)
	if got := w.ended(w.creating(of)); got.err != nil {
		t.Error(got.err)
	}
	if now := w.stored(t.Context(), "m"); now.UID != stored.UID || now.Spec.ProviderSpec.Value["memory"] != "4Gi" {
		t.Errorf("a Machine with an instance was changed: %v", now.Spec.ProviderSpec.Value)
	}
}

func TestTheCreationTimeOutEndsTheWait(t *testing.T) {
	w := newWorld(t)
	of := w.ordered("m", 2*time.Second)
	creating := w.creating(of)
	w.stored(t.Context(), "m")
	w.failedWith("m", "Transient", "CreateError", "connection refused")
	got := w.ended(creating)
	if codeOf(got.err) != codes.DeadlineExceeded || !strings.Contains(got.err.Error(), "connection refused") {
		t.Errorf("CreateMachine returns %v", got.err)
	}
}

func TestAnInstanceThatIsNotAsWantedIsUninitialized(t *testing.T) {
	w := newWorld(t)
	of := w.ordered("m", time.Hour)
	creating := w.creating(of)
	w.stored(t.Context(), "m")
	w.made("m")
	w.ended(creating)
	w.report("m", `{"status":{"conditions":[{"type":"InstanceExists","status":"True",`+now+`},{"type":"InstanceUpToDate","status":"False","reason":"UpdateError","message":"a volume is missing",`+now+`}],
		"providerStatus":{"failure":{"operation":"Update","class":"Unknown"}}}}`, "")
	response, code := w.status(of)
	if code != codes.Uninitialized || response == nil || response.ProviderID == "" {
		t.Errorf("the status is %+v, %v", response, code)
	}
	_, err := w.driver.InitializeMachine(t.Context(), &driver.InitializeMachineRequest{Machine: of, MachineClass: w.class, Secret: w.secret})
	if codeOf(err) != codes.Uninitialized || !strings.Contains(err.Error(), "a volume is missing") {
		t.Errorf("InitializeMachine returns %v", err)
	}
}

// removed plays the manager that removes an instance, once nothing holds it.
func (w *world) removed(ctx context.Context, name string) {
	for ctx.Err() == nil {
		m, err := w.driver.get(ctx, w.namespace, name)
		if err == nil && m == nil {
			return
		}
		if err == nil && m.DeletionTimestamp != nil && len(m.Spec.LifecycleHooks.PreTerminate) == 0 {
			_, _ = w.driver.patch(ctx, machines, w.namespace, name, "application/merge-patch+json", map[string]any{"metadata": map[string]any{"finalizers": nil}})
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestADeletionWaitsUntilTheInstanceIsGone(t *testing.T) {
	w := newWorld(t)
	of := w.ordered("m", time.Hour)
	creating := w.creating(of)
	w.stored(t.Context(), "m")
	w.made("m")
	w.ended(creating)
	state := ""
	remove := func() codes.Code {
		response, err := w.driver.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: of, MachineClass: w.class, Secret: w.secret})
		if response != nil {
			state = response.LastKnownState
		}
		return codeOf(err)
	}
	// Somebody else deletes it: the hook holds it.
	if err := client.Resource(machines).Namespace(w.namespace).Delete(t.Context(), "m", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if m := w.stored(t.Context(), "m"); len(m.Spec.LifecycleHooks.PreTerminate) != 1 {
		t.Errorf("the hooks are %v", m.Spec.LifecycleHooks)
	}
	// Had its owner been removed by force, MCM's collection of orphans would find it.
	if got := w.listed(); len(got) != 1 {
		t.Errorf("%v is listed while the hook holds the instance", got)
	}
	w.driver.options.DeletionWait = time.Second
	if code := remove(); code != codes.DeadlineExceeded {
		t.Errorf("without a manager DeleteMachine returns %v", code)
	}
	if !strings.Contains(state, "instance kubemark://m") {
		t.Errorf("the last known state is %q", state)
	}
	if got := w.listed(); len(got) != 0 {
		t.Errorf("%v is listed during the deletion", got)
	}
	w.driver.options.DeletionWait = time.Minute
	go w.removed(t.Context(), "m")
	if code := remove(); code != codes.OK {
		t.Errorf("DeleteMachine returns %v", code)
	}
	if code := remove(); code != codes.NotFound {
		t.Errorf("the second DeleteMachine returns %v", code)
	}
}

func TestAnOrphanIsNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	creating := w.creating(w.ordered("m", time.Hour))
	w.stored(t.Context(), "m")
	w.made("m")
	w.ended(creating)
	orphan := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "m"}, Spec: mcm.MachineSpec{ProviderID: "kubemark://m"}}
	if _, err := w.driver.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: orphan, MachineClass: w.class, Secret: w.secret}); err != nil {
		t.Fatal(err)
	}
	if m := w.stored(t.Context(), "m"); m.DeletionTimestamp == nil || len(m.Spec.LifecycleHooks.PreTerminate) != 0 {
		t.Errorf("the Machine was not let go: %+v", m)
	}
}

// The ConfigMap of the manager's inventory is for people: others may write it.
func TestAForgedInventoryRemovesNothing(t *testing.T) {
	w := newWorld(t)
	creating := w.creating(w.ordered("m", time.Hour))
	w.stored(t.Context(), "m")
	w.made("m")
	w.ended(creating)
	w.create(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, w.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"machine-iac-inventory"},"data":{"inventory.json":`+
		`"{\"checked\":\"2026-01-02T00:00:00Z\",\"instances\":[{\"provider_id\":\"kubemark://other\",\"name\":\"other\",\"machine_uid\":\"gone\",\"listedBy\":\"m\",`+
		`\"firstSeen\":\"2026-01-01T00:00:00Z\",\"orphaned\":true}]}"}}`)
	if got := w.listed(); len(got) != 1 {
		t.Errorf("%v is listed, want the instance of the Machine m only", got)
	}
	forged := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "other"}, Spec: mcm.MachineSpec{ProviderID: "kubemark://other"}}
	_, err := w.driver.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: forged, MachineClass: w.class, Secret: w.secret})
	if code := codeOf(err); code != codes.NotFound {
		t.Errorf("DeleteMachine returns %v", code)
	}
	all, err := client.Resource(machines).Namespace(w.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) != 1 {
		t.Errorf("there are %d Machines, %v; want none that adopts an instance to destroy it", len(all.Items), err)
	}
}

func TestAMachineOfAnEarlierOneOfThatNameGoesFirst(t *testing.T) {
	w := newWorld(t)
	first := w.ordered("m", time.Hour)
	creating := w.creating(first)
	old := w.stored(t.Context(), "m")
	w.made("m")
	w.ended(creating)
	if err := client.Resource(mcmMachines).Namespace(w.namespace).Delete(t.Context(), "m", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	second := w.ordered("m", time.Hour)
	if _, code := w.status(second); code != codes.NotFound {
		t.Errorf("the status is %v, want NotFound", code)
	}
	creating = w.creating(second)
	w.waiting(creating)
	w.removed(t.Context(), "none") // nothing is there of that name
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go w.removed(ctx, "m")
	for ctx.Err() == nil {
		if m, err := w.driver.get(ctx, w.namespace, "m"); err == nil && m != nil && m.UID != old.UID {
			cancel()
		}
	}
	w.made("m")
	if got := w.ended(creating); got.err != nil {
		t.Error(got.err)
	}
}
