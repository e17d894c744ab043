package print

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine"

	"github.com/machine-iac/machine-iac-operator/internal/plan/diff"
	"github.com/machine-iac/machine-iac-operator/internal/plan/manifest"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/golden"
)

// every has all that can be printed.
func every() *preview.Preview {
	set := &preview.Set{
		Kind: "MachineSet", Namespace: "ns", Name: "workers", Replicas: 2, Module: "example@sha256:00", ProviderSpec: "example.com/v1 ExampleProviderSpec",
		Source: manifest.Source{File: "a_b.yaml", Document: 1, Line: 3}, MachineName: "workers-", Generated: true,
		InstanceType: diff.Value{Value: "a|b_c"}, Region: diff.Value{Sensitive: true}, Zone: diff.Value{Unknown: true},
		Addresses: []preview.Address{{Type: "InternalIP", Address: diff.Value{Value: "10.0.0.1"}}, {Type: "Hostname", Address: diff.Value{Unknown: true}}},
		Size:      &preview.Size{CPU: 2, MemoryMiB: 1536, Architecture: "amd64"},
		Image:     diff.Value{Value: "projects/a/global/images/one-with-a-name-that-is-long_2"},
		Disks:     []preview.Disk{{Size: diff.Value{Value: "120Gi"}, Type: "gp3"}, {Size: diff.Value{Unknown: true}}, {Size: diff.Value{Value: "1Gi"}}, {Size: diff.Value{Value: "1Gi"}}},
		Secrets:   []manifest.Secret{{Name: "c", Role: "credentials"}}, Reads: []string{"data.a.b"}, Open: []string{"a.b"}, Warnings: []string{"be *careful* <b>"},
		Resources: []diff.Resource{
			{Address: "a.new", Type: "a", Action: engine.ActionCreate, Attributes: []diff.Attribute{
				{Path: "text", Action: engine.ActionCreate, Value: diff.Value{Value: "```\n<x>"}}, {Path: "secret", Action: engine.ActionCreate, Value: diff.Value{Sensitive: true}},
				{Path: strings.Repeat("long", 20), Action: engine.ActionCreate, Value: diff.Value{Unknown: true}},
			}},
			{Address: "a.changed", Type: "a", Action: engine.ActionUpdate, Attributes: []diff.Attribute{
				{Path: "size", Action: engine.ActionUpdate, Before: &diff.Value{Value: 1}, Value: diff.Value{Value: 2}},
				{Path: "gone", Action: engine.ActionDelete, Before: &diff.Value{Value: "x"}},
				{Path: "more", Action: engine.ActionCreate, Value: diff.Value{Value: true}},
			}},
			{Address: "a.replaced", Type: "a", Action: engine.ActionReplace, Attributes: []diff.Attribute{}},
			{Address: "a.destroyed", Type: "a", Action: engine.ActionDelete, Attributes: []diff.Attribute{}},
			{Address: "a.forgotten", Type: "a", Action: engine.ActionForget, Attributes: []diff.Attribute{}},
		},
	}
	sets := []*preview.Set{set, {Kind: "Machine", Namespace: "ns", Name: "alone", Replicas: 1, MachineName: "alone", Source: manifest.Source{File: "-", Document: 1, Line: 1}, Resources: []diff.Resource{}}}
	return &preview.Preview{FormatVersion: preview.FormatVersion, Engine: "tofu 1.2.3", Sets: sets, Summary: preview.Summarise(sets)}
}

// everyLive has all that can be printed of a cluster.
func everyLive() *preview.Preview {
	shown := every()
	changed := []diff.Attribute{{Path: "zone", Action: engine.ActionUpdate, Before: &diff.Value{Value: "a"}, Value: diff.Value{Value: "b"}}}
	resources := func(name string) []diff.Resource {
		return []diff.Resource{{Address: "a.this", Type: "a", Action: engine.ActionUpdate, Unsure: true, Attributes: []diff.Attribute{
			{Path: "name", Action: engine.ActionUpdate, Before: &diff.Value{Value: name}, Value: diff.Value{Value: name + "_new"}},
			{Path: "text", Action: engine.ActionUpdate, Before: &diff.Value{Value: "a: 1\nb: 2\n"}, Value: diff.Value{Value: "a: 1\nb: 3\n"}},
		}}}
	}
	shown.Attach([]*preview.Live{
		{
			Exists: true, Replicas: 8, Create: 1, Delete: 2, DeletePolicy: "Oldest",
			Machines: []*preview.LiveMachine{
				{Name: "workers-a", Phase: "Running", Result: preview.Unchanged},
				{Name: "workers-b", Phase: "Running", Result: preview.InPlace, Fields: changed, Resources: resources("b")},
				{Name: "workers-c", Phase: "Running", Result: preview.InPlace, Fields: changed, Resources: resources("c")},
				{Name: "workers-d", Phase: "Running", Result: preview.NewMachine, Why: "the change cannot be made in place: " + strings.Repeat("long ", 30), Fields: []diff.Attribute{
					changed[0], {Path: "cpu", Action: engine.ActionUpdate, Before: &diff.Value{Value: 4}, Value: diff.Value{Value: 8}, Forces: true},
				}, Resources: []diff.Resource{{Address: "a.this", Type: "a", Action: engine.ActionReplace, Attributes: []diff.Attribute{
					{Path: "size", Action: engine.ActionUpdate, Before: &diff.Value{Value: 4}, Value: diff.Value{Value: 8}, Forces: true},
				}}}, Notes: []string{"A run has its state."}},
				{Name: "workers-e", Result: preview.NotMade, Why: "it has no instance yet"},
				{Name: "workers-f", Phase: "Running", Result: preview.Refused, Why: "cpu is <no> number"},
				{Name: "workers-g", Phase: "Failed", Result: preview.Gone, Why: "it has failed"},
				{Name: "workers-h", Phase: "Running", Result: preview.Undecided, Why: "its state cannot be read\nat all"},
				{Name: "workers-i", Phase: "Running", Result: preview.Unchanged, Drift: "the instance is not as it was made"},
			},
		},
		{Exists: true, Replicas: 1, Machines: []*preview.LiveMachine{{Name: "alone", Phase: "Running", Result: preview.Unchanged}}},
	})
	return shown
}

func TestPrintLive(t *testing.T) {
	for format, extension := range extensions {
		t.Run("live."+extension, func(t *testing.T) {
			var out strings.Builder
			if err := Print(&out, everyLive(), format, false); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "testdata/print/live."+extension, out.String())
		})
	}
	t.Run("in colours", func(t *testing.T) {
		var out strings.Builder
		if err := Print(&out, everyLive(), "", true); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "testdata/print/live-colours.txt", out.String())
	})
	t.Run("a set that is not there", func(t *testing.T) {
		shown := &preview.Preview{Sets: []*preview.Set{{Kind: manifest.KindMachineSet, Namespace: "ns", Name: "new", Replicas: 1, MachineName: "new-", Generated: true}}}
		shown.Attach([]*preview.Live{{Create: 1}})
		var out strings.Builder
		if err := Print(&out, shown, "", false); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"MachineSet ns/new is not in the cluster\n", "Machine ns/new-(generated), as each of 1 that would be created", "Live: 0 Machines exist: 0 stay as they are"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it lacks %q:\n%s", want, out.String())
			}
		}
	})
}

func TestPrint(t *testing.T) {
	for format, extension := range extensions {
		t.Run("every."+extension, func(t *testing.T) {
			var out strings.Builder
			if err := Print(&out, every(), format, false); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), "\x1b") {
				t.Errorf("it has colours:\n%q", out.String())
			}
			golden.Check(t, "testdata/print/every."+extension, out.String())
		})
	}
	t.Run("in colours", func(t *testing.T) {
		var out strings.Builder
		if err := Print(&out, every(), "", true); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "testdata/print/colours.txt", out.String())
	})
	t.Run("in colours for people only", func(t *testing.T) {
		var out strings.Builder
		if err := Print(&out, every(), "markdown", true); err != nil || strings.Contains(out.String(), "\x1b") {
			t.Errorf("it has colours, or %v:\n%q", err, out.String())
		}
	})
	t.Run("in no other format", func(t *testing.T) {
		if err := Print(&strings.Builder{}, every(), "xml", false); err == nil {
			t.Error("it knows XML")
		}
	})
	t.Run("nothing at all", func(t *testing.T) {
		var out strings.Builder
		if err := Print(&out, &preview.Preview{}, "", false); err != nil || out.String() != "Preview: 0 Machines: 0 resources to add, 0 to change, 0 to destroy.\n" {
			t.Errorf("it prints %q, %v", out.String(), err)
		}
	})
}

func TestATerminalIsLeftAlone(t *testing.T) {
	shown := every()
	shown.Sets[0].Zone = diff.Value{Value: "a\x1b[2J\nb\u009b1m"}
	shown.Sets[0].Image = diff.Value{Value: "i\x1b[2J"}
	shown.Sets[0].Disks = []preview.Disk{{Size: diff.Value{Value: "1\x1b[2J"}, Type: "t\x1b[2J"}}
	shown.Sets[0].Warnings = []string{"x\x1b[2J"}
	shown.Sets[0].Resources[0].Attributes[0] = diff.Attribute{Path: "p\x1b[2J", Action: engine.ActionCreate, Value: diff.Value{Value: "v\x1b[2J\u009b1m"}}
	for _, format := range []string{"", "markdown"} {
		var out strings.Builder
		if err := Print(&out, shown, format, false); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\u009b") {
			t.Errorf("it moves the cursor:\n%q", out.String())
		}
	}
}
