package preview

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
)

// every has all that can be printed.
func every() *Preview {
	set := &Set{
		Kind: "MachineSet", Namespace: "ns", Name: "workers", Replicas: 2, Module: "example@sha256:00", ProviderSpec: "example.com/v1 ExampleProviderSpec",
		Source: Source{File: "a_b.yaml", Document: 1, Line: 3}, MachineName: "workers-", Generated: true,
		InstanceType: Value{Value: "a|b_c"}, Region: Value{Sensitive: true}, Zone: Value{Unknown: true},
		Addresses: []Address{{Type: "InternalIP", Address: Value{Value: "10.0.0.1"}}, {Type: "Hostname", Address: Value{Unknown: true}}},
		Size:      &Size{CPU: 2, MemoryMiB: 1536, Architecture: "amd64"},
		Image:     Value{Value: "projects/a/global/images/one-with-a-name-that-is-long_2"},
		Disks:     []Disk{{Size: Value{Value: "120Gi"}, Type: "gp3"}, {Size: Value{Unknown: true}}, {Size: Value{Value: "1Gi"}}, {Size: Value{Value: "1Gi"}}},
		Secrets:   []Secret{{Name: "c", Role: "credentials"}}, Reads: []string{"data.a.b"}, Open: []string{"a.b"}, Warnings: []string{"be *careful* <b>"},
		Resources: []Resource{
			{Address: "a.new", Type: "a", Action: tofu.ActionCreate, Attributes: []Attribute{
				{Path: "text", Action: tofu.ActionCreate, Value: Value{Value: "```\n<x>"}}, {Path: "secret", Action: tofu.ActionCreate, Value: Value{Sensitive: true}},
				{Path: strings.Repeat("long", 20), Action: tofu.ActionCreate, Value: Value{Unknown: true}},
			}},
			{Address: "a.changed", Type: "a", Action: tofu.ActionUpdate, Attributes: []Attribute{
				{Path: "size", Action: tofu.ActionUpdate, Before: &Value{Value: 1}, Value: Value{Value: 2}},
				{Path: "gone", Action: tofu.ActionDelete, Before: &Value{Value: "x"}},
				{Path: "more", Action: tofu.ActionCreate, Value: Value{Value: true}},
			}},
			{Address: "a.replaced", Type: "a", Action: tofu.ActionReplace, Attributes: []Attribute{}},
			{Address: "a.destroyed", Type: "a", Action: tofu.ActionDelete, Attributes: []Attribute{}},
			{Address: "a.forgotten", Type: "a", Action: tofu.ActionForget, Attributes: []Attribute{}},
		},
	}
	sets := []*Set{set, {Kind: "Machine", Namespace: "ns", Name: "alone", Replicas: 1, MachineName: "alone", Source: Source{File: "-", Document: 1, Line: 1}, Resources: []Resource{}}}
	return &Preview{FormatVersion: FormatVersion, Engine: "tofu 1.2.3", Sets: sets, Summary: summarise(sets)}
}

// everyLive has all that can be printed of a cluster.
func everyLive() *Preview {
	preview := every()
	changed := []Attribute{{Path: "zone", Action: tofu.ActionUpdate, Before: &Value{Value: "a"}, Value: Value{Value: "b"}}}
	resources := func(name string) []Resource {
		return []Resource{{Address: "a.this", Type: "a", Action: tofu.ActionUpdate, Unsure: true, Attributes: []Attribute{
			{Path: "name", Action: tofu.ActionUpdate, Before: &Value{Value: name}, Value: Value{Value: name + "_new"}},
			{Path: "text", Action: tofu.ActionUpdate, Before: &Value{Value: "a: 1\nb: 2\n"}, Value: Value{Value: "a: 1\nb: 3\n"}},
		}}}
	}
	preview.Attach([]*Live{
		{
			Exists: true, Replicas: 8, Create: 1, Delete: 2, DeletePolicy: "Oldest",
			Machines: []*LiveMachine{
				{Name: "workers-a", Phase: "Running", Verdict: Unchanged},
				{Name: "workers-b", Phase: "Running", Verdict: InPlace, Fields: changed, Resources: resources("b")},
				{Name: "workers-c", Phase: "Running", Verdict: InPlace, Fields: changed, Resources: resources("c")},
				{Name: "workers-d", Phase: "Running", Verdict: NewMachine, Why: "the change cannot be made in place: " + strings.Repeat("long ", 30), Fields: []Attribute{
					changed[0], {Path: "cpu", Action: tofu.ActionUpdate, Before: &Value{Value: 4}, Value: Value{Value: 8}, Forces: true},
				}, Resources: []Resource{{Address: "a.this", Type: "a", Action: tofu.ActionReplace, Attributes: []Attribute{
					{Path: "size", Action: tofu.ActionUpdate, Before: &Value{Value: 4}, Value: Value{Value: 8}, Forces: true},
				}}}, Notes: []string{"A run has its state."}},
				{Name: "workers-e", Verdict: NotMade, Why: "it has no instance yet"},
				{Name: "workers-f", Phase: "Running", Verdict: Refused, Why: "cpu is <no> number"},
				{Name: "workers-g", Phase: "Failed", Verdict: Gone, Why: "it has failed"},
				{Name: "workers-h", Phase: "Running", Verdict: Undecided, Why: "its state cannot be read\nat all"},
				{Name: "workers-i", Phase: "Running", Verdict: Unchanged, Drift: "the instance is not as it was made"},
			},
		},
		{Exists: true, Replicas: 1, Machines: []*LiveMachine{{Name: "alone", Phase: "Running", Verdict: Unchanged}}},
	})
	return preview
}

func TestPrintLive(t *testing.T) {
	for format, extension := range extensions {
		t.Run("live."+extension, func(t *testing.T) {
			var out strings.Builder
			if err := everyLive().Print(&out, format, false); err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/print/live."+extension, out.String())
		})
	}
	t.Run("in colours", func(t *testing.T) {
		var out strings.Builder
		if err := everyLive().Print(&out, "", true); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/print/live-colours.txt", out.String())
	})
	t.Run("a set that is not there", func(t *testing.T) {
		preview := &Preview{Sets: []*Set{{Kind: setKind, Namespace: "ns", Name: "new", Replicas: 1, MachineName: "new-", Generated: true}}}
		preview.Attach([]*Live{{Create: 1}})
		var out strings.Builder
		if err := preview.Print(&out, "", false); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"MachineSet ns/new is not in the cluster\n", "Machine ns/new-(generated), as each of 1 that would be made", "Live: 0 Machines exist: 0 stay as they are"} {
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
			if err := every().Print(&out, format, false); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), "\x1b") {
				t.Errorf("it has colours:\n%q", out.String())
			}
			golden(t, "testdata/print/every."+extension, out.String())
		})
	}
	t.Run("in colours", func(t *testing.T) {
		var out strings.Builder
		if err := every().Print(&out, "", true); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/print/colours.txt", out.String())
	})
	t.Run("in colours for people only", func(t *testing.T) {
		var out strings.Builder
		if err := every().Print(&out, "markdown", true); err != nil || strings.Contains(out.String(), "\x1b") {
			t.Errorf("it has colours, or %v:\n%q", err, out.String())
		}
	})
	t.Run("in no other format", func(t *testing.T) {
		if err := every().Print(&strings.Builder{}, "xml", false); err == nil {
			t.Error("it knows XML")
		}
	})
	t.Run("nothing at all", func(t *testing.T) {
		var out strings.Builder
		if err := (&Preview{}).Print(&out, "", false); err != nil || out.String() != "Preview: 0 Machines: 0 resources to add, 0 to change, 0 to destroy.\n" {
			t.Errorf("it prints %q, %v", out.String(), err)
		}
	})
}

func TestATerminalIsLeftAlone(t *testing.T) {
	preview := every()
	preview.Sets[0].Zone = Value{Value: "a\x1b[2J\nb\u009b1m"}
	preview.Sets[0].Image = Value{Value: "i\x1b[2J"}
	preview.Sets[0].Disks = []Disk{{Size: Value{Value: "1\x1b[2J"}, Type: "t\x1b[2J"}}
	preview.Sets[0].Warnings = []string{"x\x1b[2J"}
	preview.Sets[0].Resources[0].Attributes[0] = Attribute{Path: "p\x1b[2J", Action: tofu.ActionCreate, Value: Value{Value: "v\x1b[2J\u009b1m"}}
	for _, format := range []string{"", "markdown"} {
		var out strings.Builder
		if err := preview.Print(&out, format, false); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\u009b") {
			t.Errorf("it moves the cursor:\n%q", out.String())
		}
	}
}
