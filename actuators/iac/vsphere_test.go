package iac

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
	simulation "github.com/machine-iac/machine-iac-operator/test/vcenter"
)

// vcenter is a simulated one, and a bench whose engines reach it by its name.
type vcenter struct {
	*bench
	server *simulation.VCenter
	tag    string
}

func newVCenter(t *testing.T) *vcenter {
	t.Helper()
	return newVCenterReached(t, func(b *bench, environment map[string]string) { b.environment = environment })
}

// newVCenterReached has reach give the bench the environment that leads to the simulated vCenter:
// the file of its certificate's authority, and a proxy.
func newVCenterReached(t *testing.T, reach func(b *bench, environment map[string]string)) *vcenter {
	t.Helper()
	long.Test(t)
	parallel(t)
	server, err := simulation.Start(t.Context(), repository(t, "bin", "vcsim"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	namespace, err := plane.Namespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := &vcenter{server: server, tag: server.Tag, bench: &bench{
		t: t, client: plane.Client, namespace: namespace, clock: clocktesting.NewFakePassiveClock(time.Now()),
	}}
	reach(v.bench, server.Environment())
	v.secret("vsphere", map[string]string{
		simulation.Name + ".username": simulation.Username, simulation.Name + ".password": simulation.Password,
	})
	v.secret("user-data", map[string]string{"userData": `{"ignition":{"version":"3.2.0"}}`})
	v.start(shortdir.New(t), "owner-1")
	return v
}

// ask calls the simulator, and returns false for what is not there.
func (v *vcenter) ask(method, address string, into any) bool {
	v.t.Helper()
	path, query, _ := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		v.t.Fatal(err)
	}
	there, err := v.server.Ask(v.t.Context(), method, path, values, into)
	if err != nil {
		v.t.Fatal(err)
	}
	return there
}

// vm returns the instance of a Machine, nil when there is none.
func (v *vcenter) vm(machine *machinev1beta1.Machine) *simulation.VM {
	v.t.Helper()
	found := &simulation.VM{}
	if !v.ask(http.MethodGet, pathOf(machine), found) {
		return nil
	}
	return found
}

func pathOf(machine *machinev1beta1.Machine) string {
	return "/test/vm?path=" + url.QueryEscape("/DC0/vm/workers/"+machine.Name)
}

func (v *vcenter) secret(name string, content map[string]string) {
	v.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v.namespace, Name: name}, StringData: content}
	if err := plane.Create(v.t.Context(), secret); err != nil {
		v.t.Fatal(err)
	}
}

func (v *vcenter) spec(mods ...func(map[string]any)) map[string]any {
	spec := map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": "VSphereMachineProviderSpec",
		"credentialsSecret": map[string]any{"name": "vsphere"}, "userDataSecret": map[string]any{"name": "user-data"},
		"template": "DC0_C0_RP0_VM0", "numCPUs": 2, "numCoresPerSocket": 1, "memoryMiB": 2048, "diskGiB": 12, "snapshot": "",
		"dataDisks": []any{map[string]any{"name": "images", "sizeGiB": 3}},
		"network":   map[string]any{"devices": []any{map[string]any{"networkName": "VM Network"}}},
		"tagIDs":    []any{v.tag},
		"workspace": map[string]any{
			"server": simulation.Name, "datacenter": "DC0", "folder": "/DC0/vm/workers", "datastore": "/DC0/datastore/LocalDS_0",
			"resourcePool": "/DC0/host/DC0_C0/Resources",
		},
	}
	for _, mod := range mods {
		mod(spec)
	}
	return spec
}

func (v *vcenter) machine() *machinev1beta1.Machine {
	machine := builder.In(v.namespace, builder.Machine())
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec())
	return v.apply(machine)
}

// check waits for a drift check and returns it.
func (v *vcenter) check(machine *machinev1beta1.Machine) *record.DriftCheck {
	v.t.Helper()
	v.clock.SetTime(v.clock.Now().Add(2 * time.Hour))
	now := v.clock.Now().UTC()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		// An Update starts the check, and reports what one has found.
		_ = v.Update(v.t.Context(), machine)
		snapshot, err := v.store.Get(v.t.Context(), state.KeyFor(machine.Namespace, machine.UID))
		if err != nil {
			v.t.Fatal(err)
		}
		known, err := record.Read(snapshot.Meta)
		if err != nil {
			v.t.Fatal(err)
		}
		if known.Check != nil && !known.Check.At.Before(now) {
			return known.Check
		}
		time.Sleep(pause)
	}
	v.t.Fatal("no drift check in time")
	return nil
}

// reports waits until the Machine has what its guest reports.
func (v *vcenter) reports(machine *machinev1beta1.Machine) {
	v.t.Helper()
	deadline := time.Now().Add(patience)
	for !hasAddress(machine) {
		if time.Now().After(deadline) {
			v.t.Fatalf("addresses %v; want what the guest reports", machine.Status.Addresses)
		}
		v.clock.SetTime(v.clock.Now().Add(21 * time.Second))
		if err := v.drive(v.Update, machine); err != nil {
			v.t.Fatal(err)
		}
		time.Sleep(pause)
	}
}

func TestAVirtualMachineFromCreateToDelete(t *testing.T) {
	v := newVCenter(t)
	machine := v.machine()
	v.bring(machine)
	made := v.vm(machine)
	if made == nil {
		t.Fatal("there is no virtual machine in the folder")
	}
	v.reports(machine)
	v.looksAsAskedFor(machine, made)
	if found := v.check(machine); found.Result != record.DriftNone {
		t.Errorf("right after the create a check finds %s: %s", found.Result, found.Summary)
	}

	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["numCPUs"] = 4 }))
	err := v.drive(v.Update, machine)
	if !isReason(err, machinev1beta1.UnsupportedChangeMachineError) || !strings.Contains(err.Error(), "Only tagIDs can be changed on a virtual machine that exists") {
		t.Errorf("Update with more processors: %v, want UnsupportedChange in the module's words", err)
	}
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["tagIDs"] = []any{} }))
	if err := v.drive(v.Update, machine); err != nil {
		t.Errorf("Update without the tag: %v", err)
	}
	if changed := v.vm(machine); changed.UUID != made.UUID || changed.CPUs != 2 || len(changed.Tags) > 0 {
		t.Errorf("after the changes it is %+v, want the same without a tag", changed)
	}

	v.lose(machine, v.owner)
	v.bring(machine)
	if found := v.vm(machine); found.UUID != made.UUID || *machine.Spec.ProviderID != "vsphere://"+made.UUID {
		t.Errorf("after the loss of its state the Machine has %s, want the virtual machine that it had", *machine.Spec.ProviderID)
	}
	if found := v.check(machine); found.Result != record.DriftNone {
		t.Errorf("right after the import a check finds %s: %s", found.Result, found.Summary)
	}

	if err := v.drive(v.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if left := v.vm(machine); left != nil {
		t.Errorf("%+v outlived its Machine", left)
	}
}

// looksAsAskedFor compares a virtual machine, and what is published of it, with the Machine.
func (v *vcenter) looksAsAskedFor(machine *machinev1beta1.Machine, made *simulation.VM) {
	v.t.Helper()
	if id := machine.Spec.ProviderID; id == nil || *id != "vsphere://"+made.UUID {
		v.t.Errorf("providerID %v, want that of %s", id, made.UUID)
	}
	reported := slices.ContainsFunc(machine.Status.Addresses, func(a corev1.NodeAddress) bool {
		return a.Type == corev1.NodeInternalIP && strings.HasPrefix(a.Address, "10.")
	})
	if named := (corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: machine.Name}); !reported || !slices.Contains(machine.Status.Addresses, named) {
		v.t.Errorf("addresses %v, want what the guest reports, and the name", machine.Status.Addresses)
	}
	if !strings.Contains(made.Annotation, string(machine.UID)) || made.PowerState != "poweredOn" {
		v.t.Errorf("it is %s with the annotation %q, want it on, with the UID %s", made.PowerState, made.Annotation, machine.UID)
	}
	if made.CPUs != 2 || !slices.Equal(made.DisksGiB, []int{12, 3}) || !slices.Equal(made.Tags, []string{v.tag}) {
		v.t.Errorf("it has %d processors, disks of %v GiB and the tags %v", made.CPUs, made.DisksGiB, made.Tags)
	}
	if got := made.ExtraConfig["guestinfo.ignition.config.data"]; got != base64.StdEncoding.EncodeToString([]byte(`{"ignition":{"version":"3.2.0"}}`)) {
		v.t.Errorf("Ignition is given %q", got)
	}
	if got := made.ExtraConfig["guestinfo.hostname"]; got != machine.Name {
		v.t.Errorf("the guest is given the name %q", got)
	}
}

func TestAVirtualMachineThatWasDeletedIsMissed(t *testing.T) {
	v := newVCenter(t)
	machine := v.machine()
	v.bring(machine)
	if !v.ask(http.MethodDelete, pathOf(machine), nil) {
		t.Fatal("there is no virtual machine to delete")
	}
	if found := v.check(machine); found.Result != record.DriftMissing {
		t.Errorf("a check finds %s: %s; want it to miss the instance", found.Result, found.Summary)
	}
	if there, err := v.Exists(t.Context(), machine); there || err != nil {
		t.Errorf("Exists: %t, %v; want false", there, err)
	}
	if err := v.drive(v.Delete, machine); err != nil {
		t.Errorf("Delete of what is gone: %v", err)
	}
}

// People remove a template when they have made a newer one.
func TestAVirtualMachineOutlivesItsTemplateAndIsDeleted(t *testing.T) {
	v := newVCenter(t)
	machine := v.machine()
	v.bring(machine)
	if !v.ask(http.MethodDelete, "/test/vm?path="+url.QueryEscape("/DC0/vm/DC0_C0_RP0_VM0"), nil) {
		t.Fatal("there is no template to remove")
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v.namespace, Name: "user-data"}}
	if err := v.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["numCPUs"] = -1 }))
	if err := v.drive(v.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if left := v.vm(machine); left != nil {
		t.Errorf("%+v outlived its Machine", left)
	}
}

// TestAVirtualMachineOutlivesWhatItWasMadeOf removes the template, as people do after each new
// image.
func TestAVirtualMachineOutlivesWhatItWasMadeOf(t *testing.T) {
	v := newVCenter(t)
	machine := v.machine()
	v.bring(machine)
	made := v.vm(machine)
	if !v.ask(http.MethodDelete, "/test/vm?path="+url.QueryEscape("/DC0/vm/DC0_C0_RP0_VM0"), nil) {
		t.Fatal("there is no template to delete")
	}
	if found := v.check(machine); found.Result != record.DriftNone {
		t.Errorf("without its template a check finds %s: %s", found.Result, found.Summary)
	}
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["tagIDs"] = []any{} }))
	if err := v.drive(v.Update, machine); err != nil {
		t.Errorf("Update without the tag: %v", err)
	}
	if changed := v.vm(machine); changed.UUID != made.UUID || len(changed.Tags) > 0 {
		t.Errorf("after the change it is %+v, want the same without a tag", changed)
	}
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) {
		spec["network"] = map[string]any{"devices": []any{map[string]any{"networkName": "VM Network"}, map[string]any{"networkName": "VM Network"}}}
	}))
	if err := v.drive(v.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Errorf("Update with another device: %v, want UnsupportedChange", err)
	}
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) { spec["tagIDs"] = []any{} }))
	if !v.ask(http.MethodDelete, pathOf(machine), nil) {
		t.Fatal("there is no virtual machine to delete")
	}
	if found := v.check(machine); found.Result != record.DriftMissing {
		t.Errorf("without the virtual machine a check finds %s: %s; want it to miss the instance", found.Result, found.Summary)
	}
}

// The provider's words for a path that leads nowhere must be those of module.yaml.
func TestAVirtualMachineThatALookupDoesNotFindIsMadeOrNotMissed(t *testing.T) {
	v := newVCenter(t)
	machine := v.machine()
	v.lose(machine, v.owner)
	v.bring(machine)
	if !v.ask(http.MethodDelete, pathOf(machine), nil) {
		t.Fatal("there is no virtual machine after a create that had got lost before it made one")
	}
	v.lose(machine, v.owner)
	if err := v.drive(v.Delete, machine); err != nil {
		t.Errorf("Delete of what a lookup does not find: %v", err)
	}
}

// TestAVirtualMachineOfAnOpenShiftCluster has the tag that the installer made, its networks from
// its own compute cluster, and the zone of that.
func TestAVirtualMachineOfAnOpenShiftCluster(t *testing.T) {
	v := newVCenterReached(t, func(b *bench, environment map[string]string) {
		b.environment = environment
		b.cluster = &module.Cluster{Platform: "VSphere", FailureDomains: []module.FailureDomain{
			{Name: "a", Region: "east", Zone: "east-1", Server: simulation.Name, Datacenter: "DC0", ComputeCluster: "/DC0/host/DC0_C0", Datastore: "/DC0/datastore/LocalDS_0"},
			{Name: "b", Region: "east", Zone: "east-2", Server: simulation.Name, Datacenter: "DC0", ComputeCluster: "/DC0/host/DC0_C1", Datastore: "/DC0/datastore/LocalDS_0"},
		}}
	})
	machine := v.machine()
	v.bring(machine)
	if made := v.vm(machine); made == nil || !slices.Equal(made.Tags, []string{v.tag}) {
		t.Fatalf("where the installer made no tag of the cluster there is %+v, want the tag of the providerSpec only", made)
	}
	if machine.Labels[labelRegion] != "east" || machine.Labels[labelZone] != "east-1" {
		t.Errorf("labels %v, want those of the failure domain", machine.Labels)
	}
	if err := v.server.TagCluster(t.Context(), "/DC0/vm/"+simulation.Template, builder.ClusterID); err != nil {
		t.Fatal(err)
	}
	second := v.machine()
	v.bring(second)
	if made := v.vm(second); made == nil || len(made.Tags) != 2 {
		t.Errorf("with a tag of the cluster there is %+v, want it with that tag too", made)
	}
	lost := builder.In(v.namespace, builder.Machine())
	lost.Spec.ProviderSpec.Value = builder.ProviderSpec(v.spec(func(spec map[string]any) {
		spec["network"] = map[string]any{"devices": []any{map[string]any{"networkName": "nowhere"}}}
	}))
	if err := v.drive(v.Create, v.apply(lost)); !isReason(err, machinev1beta1.InvalidConfigurationMachineError) || !strings.Contains(err.Error(), `unable to get network for "nowhere"`) {
		t.Errorf("Create with a network that is not there: %v, want that its configuration is invalid", err)
	}
}
