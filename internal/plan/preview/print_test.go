package preview_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/test/golden"
)

// every returns a preview with everything that can be printed.
func every() *preview.Preview {
	set := &preview.Set{
		Kind: "MachineSet", Namespace: "ns", Name: "workers", Replicas: 2, Module: "example@sha256:00",
		ProviderSpec: "example.com/v1 ExampleProviderSpec",
		Source:       preview.Source{File: "a_b.yaml", Document: 1, Line: 3}, MachineName: "workers-", Generated: true,
		InstanceType: preview.Value{Value: "a|b_c"}, Region: preview.Value{Sensitive: true},
		Zone: preview.Value{Unknown: true},
		Addresses: []preview.Address{{Type: "InternalIP", Address: preview.Value{Value: "10.0.0.1"}},
			{Type: "Hostname", Address: preview.Value{Unknown: true}}},
		Size:  &preview.Size{CPU: 2, MemoryMiB: 1536, Architecture: "amd64"},
		Image: preview.Value{Value: "projects/a/global/images/one-with-a-name-that-is-long_2"},
		Disks: []preview.Disk{{Size: preview.Value{Value: "120Gi"}, Type: "gp3"},
			{Size: preview.Value{Unknown: true}}, {Size: preview.Value{Value: "1Gi"}},
			{Size: preview.Value{Value: "1Gi"}}},
		Secrets: []preview.Secret{{Name: "c", Role: "credentials"}}, Reads: []string{"data.a.b"},
		Open: []string{"a.b"}, Warnings: []string{"be *careful* <b>"},
		Resources: []preview.Resource{
			{Address: "a.new", Type: "a", Action: engine.ActionCreate, Attributes: []preview.Attribute{
				{Path: "text", Action: engine.ActionCreate, Value: preview.Value{Value: "```\n<x>"}},
				{Path: "secret", Action: engine.ActionCreate, Value: preview.Value{Sensitive: true}},
				{Path: strings.Repeat("long", 20), Action: engine.ActionCreate, Value: preview.Value{Unknown: true}},
			}},
			{Address: "a.changed", Type: "a", Action: engine.ActionUpdate, Attributes: []preview.Attribute{
				{Path: "size", Action: engine.ActionUpdate, Before: &preview.Value{Value: 1},
					Value: preview.Value{Value: 2}},
				{Path: "gone", Action: engine.ActionDelete, Before: &preview.Value{Value: "x"}},
				{Path: "more", Action: engine.ActionCreate, Value: preview.Value{Value: true}},
			}},
			{Address: "a.replaced", Type: "a", Action: engine.ActionReplace, Attributes: []preview.Attribute{}},
			{Address: "a.destroyed", Type: "a", Action: engine.ActionDelete, Attributes: []preview.Attribute{}},
			{Address: "a.forgotten", Type: "a", Action: engine.ActionForget, Attributes: []preview.Attribute{}},
		},
	}
	sets := []*preview.Set{set, {Kind: "Machine", Namespace: "ns", Name: "alone", Replicas: 1, MachineName: "alone",
		Source: preview.Source{File: "-", Document: 1, Line: 1}, Resources: []preview.Resource{}}}
	return &preview.Preview{FormatVersion: preview.FormatVersion, Engine: "tofu 1.2.3", Sets: sets,
		Summary: preview.Summarise(sets)}
}

// everyLive has all that can be printed of a cluster.
func everyLive() *preview.Preview {
	shown := every()
	changed := []preview.Attribute{{Path: "zone", Action: engine.ActionUpdate, Before: &preview.Value{Value: "a"},
		Value: preview.Value{Value: "b"}}}
	resources := func(name string) []preview.Resource {
		return []preview.Resource{{Address: "a.this", Type: "a", Action: engine.ActionUpdate, Unsure: true,
			Attributes: []preview.Attribute{
				{Path: "name", Action: engine.ActionUpdate, Before: &preview.Value{Value: name},
					Value: preview.Value{Value: name + "_new"}},
				{Path: "text", Action: engine.ActionUpdate, Before: &preview.Value{Value: "a: 1\nb: 2\n"},
					Value: preview.Value{Value: "a: 1\nb: 3\n"}},
			}}}
	}
	shown.Attach([]*preview.Live{
		{
			Exists: true, Replicas: 8, Create: 1, Delete: 2, DeletePolicy: "Oldest",
			Machines: []*preview.LiveMachine{
				{Name: "workers-a", Phase: "Running", Result: preview.Unchanged,
					Warnings: []string{"be *careful* <b>"}},
				{Name: "workers-b", Phase: "Running", Result: preview.InPlace, Fields: changed,
					Resources: resources("b")},
				{Name: "workers-c", Phase: "Running", Result: preview.InPlace, Fields: changed,
					Resources: resources("c")},
				{Name: "workers-d", Phase: "Running", Result: preview.NewMachine,
					Why: "the change cannot be made in place: " + strings.Repeat("long ", 30),
					Fields: []preview.Attribute{
						changed[0], {Path: "cpu", Action: engine.ActionUpdate, Before: &preview.Value{Value: 4},
							Value: preview.Value{Value: 8}, Forces: true},
					},
					Resources: []preview.Resource{{Address: "a.this", Type: "a", Action: engine.ActionReplace,
						Attributes: []preview.Attribute{
							{Path: "size", Action: engine.ActionUpdate, Before: &preview.Value{Value: 4},
								Value: preview.Value{Value: 8}, Forces: true},
						}}}, Notes: []string{"A run has its state."},
					Warnings: []string{"be quick"}},
				{Name: "workers-e", Result: preview.NotMade, Why: "it has no instance yet"},
				{Name: "workers-f", Phase: "Running", Result: preview.Refused, Why: "cpu is <no> number"},
				{Name: "workers-g", Phase: "Failed", Result: preview.Gone, Why: "it has failed"},
				{Name: "workers-h", Phase: "Running", Result: preview.Undecided,
					Why: "its state cannot be read\nat all"},
				{Name: "workers-i", Phase: "Running", Result: preview.Unchanged,
					Drift: "the instance is not as it was made"},
			},
		},
		{Exists: true, Replicas: 1,
			Machines: []*preview.LiveMachine{{Name: "alone", Phase: "Running", Result: preview.Unchanged}}},
	})
	return shown
}

func TestWarningsAreListedOnce(t *testing.T) {
	p := everyLive()
	p.Sets[0].Warnings = append(p.Sets[0].Warnings, "spec.template.spec.x: unknown")
	for n, machine := range p.Sets[0].Live.Machines {
		machine.Warnings = []string{"spec.x: unknown"}
		if n > 3 {
			machine.Warnings = append(machine.Warnings, "be\nquick")
		}
	}
	want := []string{
		"a_b.yaml:3: document 1, MachineSet ns/workers: be *careful* <b>",
		"a_b.yaml:3: document 1, MachineSet ns/workers: spec.template.spec.x: unknown",
		"a_b.yaml:3: document 1, MachineSet ns/workers, workers-e, workers-f, workers-g and 2 more: be quick",
	}
	if diff := cmp.Diff(want, p.Warnings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrintLive(t *testing.T) {
	for format, extension := range extensions {
		t.Run("live."+extension, func(t *testing.T) {
			var out strings.Builder
			if err := preview.Print(&out, everyLive(), format, false); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "testdata/print/live."+extension, out.String())
		})
	}
	t.Run("in colours", func(t *testing.T) {
		var out strings.Builder
		if err := preview.Print(&out, everyLive(), "", true); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "testdata/print/live-colours.txt", out.String())
	})
	t.Run("a set that is not there", func(t *testing.T) {
		shown := &preview.Preview{Sets: []*preview.Set{{Kind: preview.KindMachineSet, Namespace: "ns", Name: "new",
			Replicas: 1, MachineName: "new-", Generated: true}}}
		shown.Attach([]*preview.Live{{Create: 1}})
		var out strings.Builder
		if err := preview.Print(&out, shown, "", false); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"MachineSet ns/new is not in the cluster\n",
			"Machine ns/new-(generated), as each of 1 that would be created",
			"Live: 0 Machines exist: 0 stay as they are"} {
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
			if err := preview.Print(&out, every(), format, false); err != nil {
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
		if err := preview.Print(&out, every(), "", true); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "testdata/print/colours.txt", out.String())
	})
	t.Run("in colours for people only", func(t *testing.T) {
		var out strings.Builder
		if err := preview.Print(&out, every(), "markdown", true); err != nil || strings.Contains(out.String(), "\x1b") {
			t.Errorf("it has colours, or %v:\n%q", err, out.String())
		}
	})
	t.Run("in no other format", func(t *testing.T) {
		if err := preview.Print(&strings.Builder{}, every(), "xml", false); err == nil {
			t.Error("it knows XML")
		}
	})
	t.Run("nothing at all", func(t *testing.T) {
		var out strings.Builder
		if err := preview.Print(&out, &preview.Preview{}, "", false); err != nil ||
			out.String() != "Preview: 0 Machines: 0 resources to add, 0 to change, 0 to destroy.\n" {
			t.Errorf("it prints %q, %v", out.String(), err)
		}
	})
}

// fill sets every text of a value to one that a terminal would obey.
func fill(value reflect.Value, evil string) {
	switch value.Kind() {
	case reflect.String:
		value.SetString(evil)
	case reflect.Interface:
		value.Set(reflect.ValueOf(evil))
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), evil)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), evil)
	case reflect.Struct:
		for n := range value.NumField() {
			if value.Type().Field(n).IsExported() {
				fill(value.Field(n), evil)
			}
		}
	case reflect.Bool: // what is hidden, or not known, shows no text
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
	default:
		panic("a preview has a " + value.Kind().String() + ": fill it")
	}
}

func TestNoTextOfAPlanReachesATerminalAsItIs(t *testing.T) {
	for name, evil := range map[string]string{"an escape": "a\x1b[8mb", "an override of the direction": "a\u202eb",
		"no width": "a\u200bb", "an eight-bit escape": "a\u009b8mb"} {
		t.Run(name, func(t *testing.T) {
			p := &preview.Preview{}
			fill(reflect.ValueOf(p).Elem(), evil)
			p.Sets[0].Live.Create = 1
			for _, format := range []string{"", "markdown"} {
				var out strings.Builder
				if err := preview.Print(&out, p, format, true); err != nil {
					t.Fatal(err)
				}
				plain := regexp.MustCompile("\x1b\\[([012]|3[1-3])m").ReplaceAllString(out.String(), "")
				if found := strings.IndexFunc(plain,
					func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }); found >= 0 {
					t.Errorf("in the format %q the terminal gets %q", format, plain[max(0, found-40):found+10])
				}
				if !strings.Contains(plain, print.Printable(evil)) {
					t.Errorf("in the format %q nothing is shown of it", format)
				}
			}
		})
	}
}
