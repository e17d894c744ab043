package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-exec/tfexec"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// TestTheKubevirtExampleAgainstAnAPIServer makes, changes, loses, finds and destroys a VM as the operator does: with the inputs rendered
// from the example's MachineSet, the rights of its Role, and a real engine. The API server is real; KubeVirt is not there, so that nothing
// runs the VM.
func TestTheKubevirtExampleAgainstAnAPIServer(t *testing.T) {
	long.Test(t)
	w := newVMWorld(t)

	w.apply(t)
	made := w.vm(t)
	w.expectMade(t, made)

	w.playKubeVirt(t, made)
	if changes := w.plan(t); len(changes) > 0 {
		t.Errorf("a plan after the create shows changes %v; what KubeVirt writes is no drift", changes)
	}

	w.setField(t, "runStrategy", "Halted")
	if diff := cmp.Diff([]string{"kubectl_manifest.this update"}, w.plan(t)); diff != "" {
		t.Errorf("another run strategy plans (-want +got):\n%s", diff)
	}
	w.apply(t)
	if halted := w.vm(t); halted.GetUID() != made.GetUID() || stringIn(t, halted, "spec", "runStrategy") != "Halted" {
		t.Errorf("the VM is %s with %v; want %s to be halted", halted.GetUID(), halted.Object["spec"], made.GetUID())
	}

	w.setField(t, "cpu", 4)
	if changes := w.plan(t); !slices.Contains(changes, "kubectl_manifest.this delete create") {
		t.Errorf("another number of cores plans %v; want a replacement, which the operator refuses", changes)
	}
	w.setField(t, "cpu", 2)

	w.loseState(t)
	w.useLookup(t)
	for _, change := range w.plan(t) {
		if strings.Contains(change, "delete") {
			t.Errorf("the plan that finds the VM again holds %q; want it to remove nothing", change)
		}
	}
	w.apply(t)
	if found := w.vm(t); found.GetUID() != made.GetUID() {
		t.Errorf("after the lookup the VM is %s; want it to be %s still", found.GetUID(), made.GetUID())
	}

	w.destroy(t)
	w.expectGone(t, made)

	w.loseState(t)
	if _, err := w.terraform.Plan(t.Context()); err == nil || !w.module.Absent(err.Error()) {
		t.Errorf("a lookup of a VM that is not there says %v; want module.yaml to know that for absence", err)
	}
}

// vmWorld is an API server, and the module in a folder of its own with the inputs of one Machine.
type vmWorld struct {
	plane     *controlplane.ControlPlane
	module    *module.Module
	machine   *machinev1beta1.Machine
	token     string
	terraform *tfexec.Terraform
	dir       string
	config    string
}

var vmKind = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}

const (
	vmNamespace = "demo"
	userData    = "#cloud-config\n"
)

func newVMWorld(t *testing.T) *vmWorld {
	t.Helper()
	source := repository(t, "examples", "modules", "kubevirt")
	loaded, err := load.Module(os.DirFS(source))
	if err != nil {
		t.Fatal(err)
	}
	plane, err := controlplane.Start(controlplane.Default)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := envtest.InstallCRDs(plane.Config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(source, "examples", "virtualmachine-crd.yaml")}}); err != nil {
		t.Fatal(err)
	}
	w := &vmWorld{plane: plane, module: loaded, dir: filepath.Join(t.TempDir(), "kubevirt")}
	w.machine = w.machineOf(t, filepath.Join(source, "examples", "machineset.yaml"))
	w.token = w.signIn(t, filepath.Join(source, "examples", "credentials.yaml"))
	if err := os.CopyFS(w.dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	// The mirror's provider is built from source, and matches no checksum of a release.
	if err := os.Remove(filepath.Join(w.dir, ".terraform.lock.hcl")); err != nil {
		t.Fatal(err)
	}
	flags := realEngine(t)
	w.config = filepath.Join(t.TempDir(), "cli.tfrc")
	write(t, w.config, fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", flags[3]))
	if w.terraform, err = tfexec.NewTerraform(w.dir, flags[1]); err != nil {
		t.Fatal(err)
	}
	w.render(t)
	if err := w.terraform.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.actAsKubeVirt(t)
	return w
}

// machineOf returns the Machine that a MachineSet's controller would make.
func (w *vmWorld) machineOf(t *testing.T, file string) *machinev1beta1.Machine {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var set machinev1beta1.MachineSet
	if err := yaml.UnmarshalStrict(content, &set); err != nil {
		t.Fatal(err)
	}
	return &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "virtual-x7k2p", Namespace: set.Namespace, UID: "5e0ad6a1-6f9f-4f39-a4b5-3f9ad0d6c7b1", Labels: set.Spec.Template.Labels},
		Spec:       set.Spec.Template.Spec,
	}
}

// signIn applies the example's credentials and returns a token of its service account.
func (w *vmWorld) signIn(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(content), "---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := w.plane.Client.Create(t.Context(), &object); err != nil {
			t.Fatal(err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: vmNamespace, Name: "machine-iac"}}
	if err := w.plane.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// render writes the inputs of the Machine as it is.
func (w *vmWorld) render(t *testing.T) {
	t.Helper()
	inputs, err := render.Render(render.Input{
		Machine: w.machine, ClusterID: vmNamespace, Module: w.module, UserData: []byte(userData),
		Credentials: map[string][]byte{"server": []byte(w.plane.Config.Host), "token": []byte(w.token), "ca.crt": w.plane.Config.CAData},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.dir, "terraform.tfvars.json"), string(inputs.Variables))
	environment := map[string]string{"HOME": w.dir, "PATH": os.Getenv("PATH"), "CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": w.config}
	for name, value := range inputs.Environment {
		environment[name] = value
	}
	if err := w.terraform.SetEnv(environment); err != nil {
		t.Fatal(err)
	}
}

// setField changes a field of the Machine's providerSpec.
func (w *vmWorld) setField(t *testing.T, name string, value any) {
	t.Helper()
	var fields map[string]any
	err := json.Unmarshal(w.machine.Spec.ProviderSpec.Value.Raw, &fields)
	if err == nil {
		fields[name] = value
		w.machine.Spec.ProviderSpec.Value.Raw, err = json.Marshal(fields)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.render(t)
}

func (w *vmWorld) apply(t *testing.T) {
	t.Helper()
	if err := w.terraform.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (w *vmWorld) destroy(t *testing.T) {
	t.Helper()
	if err := w.terraform.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// plan returns what would change, each as an address and actions.
func (w *vmWorld) plan(t *testing.T) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan")
	if _, err := w.terraform.Plan(t.Context(), tfexec.Out(file)); err != nil {
		t.Fatal(err)
	}
	shown, err := w.terraform.ShowPlanFile(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	for _, change := range shown.ResourceChanges {
		if change.Change.Actions.NoOp() {
			continue
		}
		text := change.Address
		for _, action := range change.Change.Actions {
			text += " " + string(action)
		}
		changes = append(changes, text)
	}
	return changes
}

// vm returns the only VM there is.
func (w *vmWorld) vm(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	list := w.list(t.Context())
	if len(list) != 1 {
		t.Fatalf("there are %d VMs; want 1", len(list))
	}
	return &list[0]
}

func (w *vmWorld) list(ctx context.Context) []unstructured.Unstructured {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(vmKind)
	if err := w.plane.Client.List(ctx, &list, client.InNamespace(vmNamespace)); err != nil {
		return nil
	}
	return list.Items
}

func (w *vmWorld) expectMade(t *testing.T, vm *unstructured.Unstructured) {
	t.Helper()
	if want := "virtual-x7k2p-c02a1e74f2a4"; vm.GetName() != want {
		t.Errorf("the VM is called %s; want %s", vm.GetName(), want)
	}
	if got := vm.GetLabels()["machine-iac.io/machine-uid"]; got != string(w.machine.UID) {
		t.Errorf("the VM's label for the Machine's UID is %q", got)
	}
	if strings.Contains(fmt.Sprint(vm.Object), strings.TrimSpace(userData)) {
		t.Errorf("the VM shows its user data: %v", vm.Object)
	}
	outputs, err := w.terraform.Output(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(outputs["provider_id"].Value), `"kubevirt://`+vm.GetName()+`"`; got != want {
		t.Errorf("the provider ID is %s; want %s", got, want)
	}
	if got, want := string(outputs["instance_id"].Value), `"`+string(vm.GetUID())+`"`; got != want {
		t.Errorf("the instance is %s; want %s", got, want)
	}
	secret := &corev1.Secret{}
	if err := w.plane.Client.Get(t.Context(), client.ObjectKey{Namespace: vmNamespace, Name: vm.GetName() + "-user-data"}, secret); err != nil {
		t.Fatal(err)
	}
	if string(secret.Data["userdata"]) != userData || len(secret.Annotations) > 0 {
		t.Errorf("the Secret holds %q and the annotations %v; want the user data and none", secret.Data, secret.Annotations)
	}
	if owners := secret.OwnerReferences; len(owners) != 1 || owners[0].UID != vm.GetUID() {
		t.Errorf("the Secret belongs to %v; want it to go with its VM", owners)
	}
}

func (w *vmWorld) expectGone(t *testing.T, vm *unstructured.Unstructured) {
	t.Helper()
	if left := w.list(t.Context()); len(left) > 0 {
		t.Errorf("after the destroy there is %s", left[0].GetName())
	}
	err := w.plane.Client.Get(t.Context(), client.ObjectKey{Namespace: vmNamespace, Name: vm.GetName() + "-user-data"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("reading the Secret returns %v; want it to be gone", err)
	}
}

// playKubeVirt writes into a VM what KubeVirt does.
func (w *vmWorld) playKubeVirt(t *testing.T, vm *unstructured.Unstructured) {
	t.Helper()
	written := vm.DeepCopy()
	written.SetAnnotations(map[string]string{"kubevirt.io/latest-observed-api-version": "v1"})
	written.SetFinalizers([]string{"kubevirt.io/virtualMachineControllerFinalize"})
	for _, set := range []error{
		unstructured.SetNestedField(written.Object, "amd64", "spec", "template", "spec", "architecture"),
		unstructured.SetNestedField(written.Object, "q35", "spec", "template", "spec", "domain", "machine", "type"),
	} {
		if set != nil {
			t.Fatal(set)
		}
	}
	if err := w.plane.Client.Patch(t.Context(), written, client.MergeFrom(vm)); err != nil {
		t.Fatal(err)
	}
	status := written.DeepCopy()
	if err := unstructured.SetNestedField(status.Object, "Running", "status", "printableStatus"); err != nil {
		t.Fatal(err)
	}
	if err := w.plane.Client.Status().Patch(t.Context(), status, client.MergeFrom(written)); err != nil {
		t.Fatal(err)
	}
}

// actAsKubeVirt lets deleted VMs go, as KubeVirt and the garbage collector do, until the test ends.
func (w *vmWorld) actAsKubeVirt(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, vm := range w.list(ctx) {
				if vm.GetDeletionTimestamp() != nil {
					freed := vm.DeepCopy()
					freed.SetFinalizers(nil)
					_ = w.plane.Client.Patch(ctx, freed, client.MergeFrom(&vm)) // the next tick tries again
				}
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
}

// loseState forgets the state, as a crash between a create and the saving of its state does.
func (w *vmWorld) loseState(t *testing.T) {
	t.Helper()
	for _, name := range []string{"terraform.tfstate", "terraform.tfstate.backup"} {
		if err := os.Remove(filepath.Join(w.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// useLookup lays the files of lookup/ beside those of the module.
func (w *vmWorld) useLookup(t *testing.T) {
	t.Helper()
	for _, name := range w.module.LookupFiles() {
		content, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(w.dir, filepath.Base(name)), string(content))
	}
}

func stringIn(t *testing.T, object *unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, _, err := unstructured.NestedString(object.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
