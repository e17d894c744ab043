package preview_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/golden"
	"github.com/machine-iac/machine-iac-operator/test/planning"
)

func TestBoundsOfARollout(t *testing.T) {
	percent := func(text string) *intstr.IntOrString { return ptr.To(intstr.FromString(text)) }
	number := func(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }
	for name, tc := range map[string]struct {
		bounds                     *v1beta1.RollingUpdateBounds
		wantSurge, wantUnavailable int
	}{
		"defaults":           {wantSurge: 1},
		"an empty object":    {bounds: &v1beta1.RollingUpdateBounds{}, wantSurge: 1},
		"numbers":            {bounds: &v1beta1.RollingUpdateBounds{MaxSurge: number(0), MaxUnavailable: number(2)}, wantUnavailable: 2},
		"neither":            {bounds: &v1beta1.RollingUpdateBounds{MaxSurge: number(0), MaxUnavailable: number(0)}, wantUnavailable: 1},
		"percentages, of 10": {bounds: &v1beta1.RollingUpdateBounds{MaxSurge: percent("25%"), MaxUnavailable: percent("25%")}, wantSurge: 3, wantUnavailable: 2},
	} {
		d := &v1beta1.MachineDeployment{}
		d.Spec.Strategy.RollingUpdate = tc.bounds
		if r := preview.NewRollout(d, 10); r.MaxSurge != tc.wantSurge || r.MaxUnavailable != tc.wantUnavailable || r.Strategy != v1beta1.InPlaceOrReplace {
			t.Errorf("%s: got %d, %d by %s, want %d, %d", name, r.MaxSurge, r.MaxUnavailable, r.Strategy, tc.wantSurge, tc.wantUnavailable)
		}
	}
}

// rolled is a preview of a MachineDeployment whose Machines have these results.
func rolled(strategy v1beta1.MachineDeploymentStrategyType, change func(*preview.Rollout), results ...preview.EditResult) *preview.Preview {
	d := &v1beta1.MachineDeployment{}
	d.Spec.Strategy.Type = strategy
	rollout := preview.NewRollout(d, len(results))
	if change != nil {
		change(rollout)
	}
	live := &preview.Live{Exists: true, Replicas: int32(len(results)), Rollout: rollout}
	for n, result := range results {
		machine := &preview.LiveMachine{Name: "pool-" + string(rune('a'+n)), Phase: "Running", Revision: "4", Result: result}
		switch result {
		case preview.Replaced, preview.NewMachine:
			machine.Fields = []preview.Attribute{{Path: "cpu", Action: engine.ActionUpdate, Before: &preview.Value{Value: 4}, Value: preview.Value{Value: 8}, Forces: true}}
		case preview.InPlace:
			machine.Fields = []preview.Attribute{{Path: "zone", Action: engine.ActionUpdate, Before: &preview.Value{Value: "a"}, Value: preview.Value{Value: "b"}}}
		case preview.Undecided:
			machine.Why = "its state cannot be read"
		}
		if n > 0 && results[n-1] == result {
			machine.PlannedAs = live.Machines[n-1].Name
		}
		live.Machines = append(live.Machines, machine)
	}
	set := &preview.Set{Kind: preview.KindMachineDeployment, Namespace: "ns", Name: "pool", MachineName: "pool-", Generated: true,
		Replicas: int32(len(results)), InstanceType: preview.Value{Value: "large"}, Zone: preview.Value{Value: "b"},
		Source: preview.Source{File: "pool.yaml", Document: 1, Line: 1}, Resources: []preview.Resource{{Address: "a.this", Type: "a", Action: engine.ActionCreate}}}
	p := &preview.Preview{FormatVersion: preview.FormatVersion, Sets: []*preview.Set{set}, Summary: preview.Summarise([]*preview.Set{set})}
	p.Attach([]*preview.Live{live})
	return p
}

func TestOrderOfARollout(t *testing.T) {
	for name, tc := range map[string]struct {
		of   *preview.Preview
		want []string
	}{
		"in place": {rolled(v1beta1.InPlace, nil, preview.InPlace, preview.InPlace, preview.Unchanged), []string{"In place: 2 Machines, at most 1 at a time."}},
		"in place, where that is not enough": {rolled(v1beta1.InPlace, nil, preview.NewMachine, preview.NewMachine),
			[]string{"Not rolled out: 2 Machines. The strategy InPlace replaces none."}},
		"all at once": {rolled(v1beta1.Recreate, nil, preview.Replaced), []string{"Replaced: 1 Machine, all deleted before new ones are created."}},
		"by hand":     {rolled(v1beta1.OnDelete, nil, preview.NewMachine), []string{"Replaced once deleted: 1 Machine."}},
		"paused": {rolled(v1beta1.RollingUpdate, func(r *preview.Rollout) { r.Paused, r.MaxSurge, r.MaxUnavailable = true, 0, 2 }, preview.Replaced, preview.Replaced, preview.Replaced),
			[]string{"Paused: nothing happens until the MachineDeployment is resumed.", "Replaced: 3 Machines, with at most 3 in all and at least 1 available."}},
		"nothing to do": {rolled("", nil, preview.Unchanged), nil},
	} {
		r := tc.of.Sets[0].Live.Rollout
		if diff := cmp.Diff(tc.want, r.Order); diff != "" || len(r.Surge) > 0 {
			t.Errorf("%s: the surge is %v, want none; the order (-want +got):\n%s", name, r.Surge, diff)
		}
	}
}

func TestPrintRollout(t *testing.T) {
	shown := rolled("", func(r *preview.Rollout) {
		r.Budgets = []preview.Budget{{Namespace: "shop", Name: "cart", Machines: []string{"pool-c", "pool-d"}}}
	}, preview.InPlace, preview.InPlace, preview.Replaced, preview.Replaced, preview.Unchanged)
	for format, extension := range extensions {
		t.Run("rollout."+extension, func(t *testing.T) {
			var out strings.Builder
			if err := preview.Print(&out, shown, format, false); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "testdata/print/rollout."+extension, out.String())
		})
	}
}

func TestNotInPlaceNamesTheFields(t *testing.T) {
	for name, tc := range map[string]struct {
		of   *preview.Preview
		want string
	}{
		"some are replaced": {rolled("", nil, preview.InPlace, preview.Replaced, preview.Replaced),
			"--expect in-place: MachineDeployment ns/pool: 2 of 3 Machines cannot change in place, because of cpu: pool-b, pool-c"},
		"some are not known": {rolled(v1beta1.InPlace, nil, preview.Undecided, preview.NewMachine),
			"--expect in-place: MachineDeployment ns/pool: 2 of 2 Machines cannot change in place, because of its state cannot be read; cpu: pool-a, pool-b"},
		"none": {of: rolled("", nil, preview.InPlace, preview.Unchanged, preview.NotMade, preview.Gone)},
	} {
		got := ""
		if err := tc.of.NotInPlace(); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestReadAMachineDeployment(t *testing.T) {
	content, err := os.ReadFile("../../../modules/kubemark/examples/machinedeployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	catalog := planning.Catalog(t, "modules/kubemark")
	read := func(replace ...string) ([]*preview.Request, []string, error) {
		text := strings.NewReplacer(replace...).Replace(string(content))
		return preview.Read([]preview.File{{Name: "pool.yaml", Content: []byte(text)}}, preview.Cluster{}, catalog)
	}
	requests, _, err := read()
	if err != nil || len(requests) != 1 || requests[0].Deployment() == nil || requests[0].Machine().GenerateName != "pool-" {
		t.Fatalf("got %v, %v", requests, err)
	}
	if requests, skipped, err := read("machine.openshift.io/v1beta1", "cluster.x-k8s.io/v1beta1"); err != nil || len(requests) > 0 || len(skipped) != 1 {
		t.Errorf("Cluster API's: got %v, skipped %v, %v", requests, skipped, err)
	}
	for name, tc := range map[string]struct{ old, new, want string }{
		"an unknown strategy": {"type: InPlaceOrReplace", "type: Blue", `pool.yaml:16: document 1, MachineDeployment openshift-machine-api/pool: spec.strategy.type: it is "Blue"; write one of InPlaceOrReplace, `},
		"no percentage":       {"maxSurge: 1", "maxSurge: many", `pool.yaml:18: document 1, MachineDeployment openshift-machine-api/pool: spec.strategy.rollingUpdate.maxSurge: it is "many"; write a number`},
		"a negative number":   {"maxUnavailable: 0", "maxUnavailable: -1", `spec.strategy.rollingUpdate.maxUnavailable: it is "-1"`},
		"no selector":         {"example.com/pool: pool\n  strategy", "example.com/pool: other\n  strategy", "spec.template.metadata.labels: "},
		"no such field":       {"replicas: 3", "replica: 3", "spec.replica: the field is not known"},
	} {
		if _, _, err := read(tc.old, tc.new); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}
