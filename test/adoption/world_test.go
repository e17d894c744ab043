package adoption

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-exec/tfexec"
	tfjson "github.com/hashicorp/terraform-json"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// clusterID is the Machines' cluster.
const clusterID = "demo-x7k2p"

// root is the repository, inputsFile the file with a Machine's inputs in its module's folder.
const (
	root       = "../.."
	inputsFile = "inputs.auto.tfvars.json"
)

// world is a module in its own folder, with the state and inputs of one Machine.
type world struct {
	t         *testing.T
	module    *module.Module
	terraform *tfexec.Terraform
	dir       string
	config    string
	// beside are the names of a search's files in the folder.
	beside []string
}

// newWorld returns a module that is ready to run.
func newWorld(t *testing.T, name string) *world {
	t.Helper()
	// The mirror links to binaries in here, and an engine follows no link that leads out of its mirror.
	mirror, err := filepath.EvalSymlinks(filepath.Join(root, "bin", "mirror"))
	if err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	if mirror, err = filepath.Abs(mirror); err != nil {
		t.Fatal(err)
	}
	return newWorldIn(t, name, mirror)
}

// newWorldIn returns a module that uses a provider mirror.
func newWorldIn(t *testing.T, name, mirror string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	var err error
	if w.module, err = load.Module(os.DirFS(filepath.Join(root, "modules", name))); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(w.dir, w.module.Files()); err != nil {
		t.Fatal(err)
	}
	// The mirror's providers are built from source, and match no checksum of a release.
	if err := os.Remove(filepath.Join(w.dir, ".terraform.lock.hcl")); err != nil {
		t.Fatal(err)
	}
	w.config = filepath.Join(t.TempDir(), "cli.tfrc")
	w.write(w.config, fmt.Appendf(nil,
		"provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror))
	engine, err := filepath.Abs(filepath.Join(root, "bin", "tofu"))
	if err != nil {
		t.Fatal(err)
	}
	if w.terraform, err = tfexec.NewTerraform(w.dir, engine); err != nil {
		t.Fatalf("%v; run 'make tools'", err)
	}
	w.setEnvironment(nil)
	if err := w.terraform.Init(t.Context(), tfexec.Backend(false)); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) write(file string, content []byte) {
	w.t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) setEnvironment(more map[string]string) {
	w.t.Helper()
	environment := map[string]string{
		"HOME": w.dir, "PATH": os.Getenv("PATH"), "CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": w.config,
	}
	for name, value := range more {
		environment[name] = value
	}
	if err := w.terraform.SetEnv(environment); err != nil {
		w.t.Fatal(err)
	}
}

// machineOf returns a Machine with a providerSpec.
func machineOf(name string, spec map[string]any) *machinev1beta1.Machine {
	machine := builder.Machine(builder.WithLabels(map[string]string{builder.ClusterLabel: clusterID}))
	machine.ObjectMeta = metav1.ObjectMeta{
		Name: name, Namespace: "openshift-machine-api",
		UID: types.UID("5e0ad6a1-6f9f-4f39-a4b5-" + fmt.Sprintf("%012x", len(name))), Labels: machine.Labels,
	}
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
	return machine
}

// render writes a Machine's inputs as for a run. environment is the run's environment from the cluster.
func (w *world) render(machine *machinev1beta1.Machine, cluster string, credentials map[string][]byte,
	environment map[string]string) {
	w.t.Helper()
	w.renderIn(nil, machine, cluster, credentials, environment)
}

// renderIn does the same with more facts about the cluster.
func (w *world) renderIn(known *module.Cluster, machine *machinev1beta1.Machine, cluster string,
	credentials map[string][]byte, environment map[string]string) {
	w.t.Helper()
	inputs, err := render.Render(render.Input{
		Machine: machine, ClusterID: cluster, Module: w.module, Cluster: known, Credentials: credentials,
		UserData: []byte(`{"ignition":{"version":"3.2.0"}}`),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join(w.dir, inputsFile), inputs.Variables)
	all := map[string]string{}
	for _, more := range []map[string]string{environment, w.module.Constants(), inputs.Environment} {
		for name, value := range more {
			all[name] = value
		}
	}
	for name, content := range inputs.Files {
		file := filepath.Join(w.t.TempDir(), name)
		w.write(file, []byte(content))
		all[name] = file
	}
	w.setEnvironment(all)
}

// link adds a search's files to the module's, and removes another search's.
func (w *world) link(files ...string) {
	w.t.Helper()
	for _, name := range w.beside {
		if err := os.Remove(filepath.Join(w.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.t.Fatal(err)
		}
	}
	w.beside = nil
	for _, name := range files {
		content, err := fs.ReadFile(w.module.Files(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		w.write(filepath.Join(w.dir, path.Base(name)), content)
		w.beside = append(w.beside, path.Base(name))
	}
}

// adopt makes plans import an instance.
func (w *world) adopt(providerID, id string) {
	w.t.Helper()
	w.link(w.module.AdoptFiles()...)
	raw, err := json.Marshal(map[string]any{
		module.VariableAdopt: map[string]string{"provider_id": providerID, "id": id},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join(w.dir, "adopt.auto.tfvars.json"), raw)
	w.beside = append(w.beside, "adopt.auto.tfvars.json")
}

// forget removes the state, so that its resources have no owner.
func (w *world) forget() {
	w.t.Helper()
	for _, name := range []string{"terraform.tfstate", "terraform.tfstate.backup"} {
		if err := os.Remove(filepath.Join(w.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.t.Fatal(err)
		}
	}
}

// plan returns a plan, which must succeed and not disrupt the instance.
func (w *world) plan() *tfjson.Plan {
	w.t.Helper()
	plan, err := w.tryPlan()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, change := range plan.ResourceChanges {
		before, _ := change.Change.Before.(map[string]any)
		after, _ := change.Change.After.(map[string]any)
		for name, effect := range w.module.Effects()[change.Type] {
			if change.Change.Actions.Update() && !cmp.Equal(before[name], after[name]) {
				w.t.Errorf("the plan changes %s of %s from %v to %v, which %s", name, change.Address,
					before[name], after[name], effect)
			}
		}
	}
	return plan
}

func (w *world) tryPlan() (*tfjson.Plan, error) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "plan")
	if _, err := w.terraform.Plan(w.t.Context(), tfexec.Out(file)); err != nil {
		return nil, err
	}
	return w.terraform.ShowPlanFile(w.t.Context(), file)
}

func (w *world) apply() {
	w.t.Helper()
	if err := w.terraform.Apply(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// destroy destroys the state's resources as a run does: with only the provider configurations and their dependencies,
// without the rest of the module or inputs.
func (w *world) destroy() {
	w.t.Helper()
	bare := w.module.Bare()
	var inputs map[string]json.RawMessage
	raw, err := os.ReadFile(filepath.Join(w.dir, inputsFile))
	if err == nil {
		err = json.Unmarshal(raw, &inputs)
	}
	maps.DeleteFunc(inputs, func(name string, _ json.RawMessage) bool { return !slices.Contains(bare.Variables, name) })
	given, wrong := json.Marshal(inputs)
	names, odd := filepath.Glob(filepath.Join(w.dir, "*.tf"))
	if err := errors.Join(err, wrong, odd); err != nil {
		w.t.Fatal(err)
	}
	aside := w.t.TempDir()
	for _, name := range append(names, filepath.Join(w.dir, inputsFile)) {
		if err := os.Rename(name, filepath.Join(aside, filepath.Base(name))); err != nil {
			w.t.Fatal(err)
		}
	}
	w.write(filepath.Join(w.dir, "bare.tf"), bare.HCL)
	w.write(filepath.Join(w.dir, inputsFile), given)
	if err := w.terraform.Destroy(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	for _, name := range []string{"bare.tf", inputsFile} {
		if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := os.CopyFS(w.dir, os.DirFS(aside)); err != nil {
		w.t.Fatal(err)
	}
}

// refuses plans, and expects an error with this text on one line.
func (w *world) refuses(want string) {
	w.t.Helper()
	_, err := w.tryPlan()
	if err == nil {
		w.t.Errorf("the plan succeeds; want %q", want)
		return
	}
	if text := unframed(err); !strings.Contains(text, want) {
		w.t.Errorf("the plan fails with %s; want %q", text, want)
	}
}

// unframed returns an error's text on one line, without the frame that an engine draws around it.
func unframed(err error) string {
	framing := func(r rune) bool { return strings.ContainsRune(" \n\t│╷╵", r) }
	return strings.Join(strings.FieldsFunc(err.Error(), framing), " ")
}

// changes returns the addresses and actions of what a plan imports, creates and changes.
func changes(plan *tfjson.Plan) []string {
	var all []string
	for _, change := range plan.ResourceChanges {
		text := change.Address
		if change.Change.Importing != nil {
			text += " import"
		}
		if !change.Change.Actions.NoOp() && !change.Change.Actions.Read() {
			for _, action := range change.Change.Actions {
				text += " " + string(action)
			}
		}
		if text != change.Address {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// warnings returns the messages of failed checks.
func warnings(plan *tfjson.Plan) []string {
	var all []string
	for _, check := range plan.Checks {
		for _, instance := range check.Instances {
			for _, problem := range instance.Problems {
				all = append(all, problem.Message)
			}
		}
	}
	slices.Sort(all)
	return all
}

// output returns an output of the state, as JSON.
func (w *world) output(name string) string {
	w.t.Helper()
	outputs, err := w.terraform.Output(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, outputs[name].Value); err != nil {
		w.t.Fatal(err)
	}
	return compact.String()
}

func output(t *testing.T, plan *tfjson.Plan, name string, into any) {
	t.Helper()
	planned := plan.OutputChanges[name]
	if planned == nil || planned.AfterUnknown != false {
		t.Fatalf("output %s is not known in the plan: %+v", name, planned)
	}
	raw, err := json.Marshal(planned.After)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// listed is an instance in an inventory.
type listed struct {
	ProviderID string `json:"provider_id"`
	Name       string `json:"name"`
	Created    string `json:"created"`
	MachineUID string `json:"machine_uid"`
}
