package stacks_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// withProgram returns a folder with the CLI, the host of Go programs, and the stack's program, as its README says.
func withProgram(t *testing.T, folder string) string {
	t.Helper()
	project, err := os.ReadFile(filepath.Join(folder, "Pulumi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`binary: (\S+)`).FindSubmatch(project)
	if named == nil {
		t.Fatal("Pulumi.yaml names no program")
	}
	dir := t.TempDir()
	for _, name := range []string{"pulumi", "pulumi-language-go", "pulumi-language-yaml"} {
		if err := os.Symlink(tool(t, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, string(named[1])), "./"+folder+"/program")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return dir
}

func newSimulatedWithVolumes(t *testing.T, name string) *simulated {
	t.Helper()
	const folder = examples + "/hollow-volumes"
	binary, err := pulumi.Find(t.Context(), filepath.Join(withProgram(t, folder), "pulumi"))
	if err != nil {
		t.Fatal(err)
	}
	return newMachine(t, name, mustLoad(t, folder), newPulumi(t, "mirror", func(o *pulumi.Options) { o.Binary = binary }))
}

// volumes returns the sizes of the Machine's volumes that are not being deleted, by name. Nothing ends the protection of those that are.
func (h *simulated) volumes() map[string]string {
	h.t.Helper()
	var list corev1.PersistentVolumeList
	if err := h.Client.List(h.t.Context(), &list, client.MatchingLabels{"machine-iac.io/machine-uid": string(h.machine.UID)}); err != nil {
		h.t.Fatal(err)
	}
	sizes := map[string]string{}
	for _, one := range list.Items {
		if one.DeletionTimestamp == nil {
			sizes[one.Name] = one.Spec.Capacity.Storage().String()
		}
	}
	return sizes
}

const (
	twoVolumes   = `{"cpu":2,"volumes":[{"name":"data","size":"100Gi"},{"name":"journal","size":"10Gi"}]}`
	threeVolumes = `{"cpu":2,"volumes":[{"name":"data","size":"100Gi"},{"name":"journal","size":"10Gi"},{"name":"more","size":"1Gi"}]}`
)

// TestAProgramInGo runs a stack whose program is no YAML, from create to destroy.
func TestAProgramInGo(t *testing.T) {
	long.Test(t)
	h := newSimulatedWithVolumes(t, "storage")
	h.create(h.values(twoVolumes))
	made := h.node()
	if made == nil {
		t.Fatal("there is no Node after the create")
	}
	want := map[string]string{"storage-data": "100Gi", "storage-journal": "10Gi"}
	if diff := cmp.Diff(want, h.volumes()); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	if outputs := h.outputs(); outputs["instance_id"] != string(made.UID) || outputs["provider_id"] != made.Spec.ProviderID || len(outputs) != 7 {
		t.Errorf("outputs are %v, want the seven of the contract, as the Node has them", outputs)
	}
	if bytes.Contains(h.last(), []byte("hunter22")) || bytes.Contains(h.last(), h.token()) {
		t.Error("the checkpoint shows a secret")
	}
	h.otherHands()
	if report := h.plan("unchanged", h.values(twoVolumes)); !report.NoChange() {
		t.Errorf("a plan after the create is %+v, want no change", report.Changes)
	}
	isKept := func(c engine.Change) bool { return c.Action != engine.ActionReplace }
	replaced := slices.DeleteFunc(h.plan("bigger", h.values(`{"cpu":3}`)).Destroys(), isKept)
	if len(replaced) != 1 || replaced[0].Address != nodeAddress {
		t.Errorf("replaced would be %v, want the Node", replaced)
	}
	if report := h.plan("more", h.values(threeVolumes)); report.InPlaceOnly() || len(report.Creates()) != 1 {
		t.Errorf("the plan is %+v, want a volume made, which the operator refuses", report.Changes)
	}
	h.destroy(h.values(twoVolumes))
	if h.node() != nil || len(h.volumes()) != 0 {
		t.Errorf("after the destroy there are the Node %v and the volumes %v, want none", h.node(), h.volumes())
	}
}

// TestANodeOfAProgramInGoThatTheStateLacksIsFound finds with a program in YAML what one in Go has made.
func TestANodeOfAProgramInGoThatTheStateLacksIsFound(t *testing.T) {
	long.Test(t)
	h := newSimulatedWithVolumes(t, "stray")
	with := h.values(twoVolumes)
	empty := h.empty(with)
	h.create(with)
	before := h.node().UID
	lookup, err := h.engine.RunSearch(t.Context(), engine.SearchLookup, h.run("look", with))
	if err != nil {
		t.Fatal(err)
	}
	adopted, err := pulumi.Adopt(empty, lookup)
	if err != nil {
		t.Fatal(err)
	}
	h.set(adopted)
	h.must("continue", with, func(f *pulumi.Workspace) (*engine.Report, error) {
		report, err := f.Plan(t.Context())
		if err != nil || len(report.Destroys()) != 0 {
			t.Fatalf("the plan is %+v, %v, want nothing destroyed", report.Changes, err)
		}
		return f.ApplyPlan(t.Context())
	})
	if after := h.node(); after == nil || after.UID != before {
		t.Errorf("the Node is %v, want that with UID %s", after, before)
	}
	if report := h.plan("unchanged", with); !report.NoChange() {
		t.Errorf("a plan after that is %+v, want no change", report.Changes)
	}
	h.destroy(with)
	if h.node() != nil || len(h.volumes()) != 0 {
		t.Errorf("after the destroy there are the Node %v and the volumes %v, want none", h.node(), h.volumes())
	}
}

func TestAMissingProgramIsReported(t *testing.T) {
	long.Test(t)
	h := newMachine(t, "bare", mustLoad(t, examples+"/hollow-volumes"), newPulumi(t, "mirror"))
	report, err := h.with("create", h.values(twoVolumes), func(f *pulumi.Workspace) (*engine.Report, error) { return f.Apply(t.Context()) })
	if err == nil || !strings.Contains(err.Error(), `finding the program "stack-hollow-volumes-v1"`) {
		t.Errorf("Apply() = %v, want which program is missing\n%s", err, report.Text)
	}
}
