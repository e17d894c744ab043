package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// advising returns the example module with check blocks.
func advising(t testing.TB) *module.Module {
	t.Helper()
	return moduleOf(t, map[string]string{"checks.tf": `
check "cpu" {
  assert {
    condition     = var.provider_spec.cpu >= 2
    error_message = "providerSpec.cpu: ${var.provider_spec.cpu} is few"
  }
}

check "name" {
  assert {
    condition     = var.machine.name != "odd"
    error_message = "an odd name"
  }
}

check "token" {
  assert {
    condition     = coalesce(var.provider_spec.apiToken, 0) == 0
    error_message = "the token is ${coalesce(var.provider_spec.apiToken, 0)}"
  }
}

check "disks" {
  assert {
    condition     = var.provider_spec.disks[0].gib > 1
    error_message = "a small disk"
  }
}
`})
}

func TestChecksWarn(t *testing.T) {
	const disk = `,"disks":[{"gib":9}]`
	tests := map[string]struct {
		fields string
		name   string
		want   []Warning
	}{
		"nothing is doubtful": {fields: disk},
		"one that does not hold warns in its own words, with its path": {
			fields: disk + `,"cpu":1`,
			want: []Warning{{Path: "spec.providerSpec.value.cpu", Message: "providerSpec.cpu: 1 is few",
				Advice: true}},
		},
		"of what is unknown nothing is said": {fields: disk + `,"cpu":1`, name: "-",
			want: []Warning{{Path: "spec.providerSpec.value.cpu", Message: "providerSpec.cpu: 1 is few",
				Advice: true}}},
		"the Machine may be doubtful too": {fields: disk, name: "odd",
			want: []Warning{{Path: "metadata.name", Message: "an odd name", Advice: true}}},
		"what cannot be evaluated is left to the engine": {fields: ``},
		"a secret is not shown": {
			fields: disk + `,"apiToken":4711`,
			want: []Warning{{Path: "spec.providerSpec.value.apiToken",
				Message: "the validation is in checks.tf:17 of the module", Advice: true}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			input := inputWith(t, valid+tc.fields+"}")
			input.Module = advising(t)
			switch tc.name {
			case "":
			case "-":
				input.Machine.Name = ""
			default:
				input.Machine.Name = tc.name
			}
			warnings, err := Check(input)
			if diff := cmp.Diff(tc.want, warnings); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			inputs, err := Render(input)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, inputs.Warnings); tc.name != "-" && diff != "" {
				t.Errorf("the warnings of a run differ (-want +got):\n%s", diff)
			}
			for _, warning := range warnings {
				if strings.Contains(warning.String(), "4711") || warning.String() != warning.Message {
					t.Errorf("it is shown as %q", warning)
				}
			}
		})
	}
}

func TestAnAliasOfAKindIsServedAndWarnedOf(t *testing.T) {
	aliased := moduleOf(t, map[string]string{"module.yaml": strings.Replace(readFile(t, "testdata/module/module.yaml"),
		"kind: ExampleProviderSpec\n", "kind: ExampleProviderSpec\n      aliases: [ExampleProviderConfig]\n", 1)})
	catalog, err := module.NewCatalog(aliased, kubemarkModule(t))
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{
		`"apiVersion":"example.io/v1",`: "example.io/v1, Kind=ExampleProviderConfig",
		`"apiVersion":"example.io/v9",`: "example.io/v9, Kind=ExampleProviderConfig",
		``:                              "/, Kind=ExampleProviderConfig",
		`"apiVersion":"other.io/v1",`:   "",
		`"apiVersion":"v1",`:            "",
	} {
		t.Run(version, func(t *testing.T) {
			input := inputWith(t, strings.Replace(strings.Replace(valid, `"apiVersion":"example.io/v1",`, version, 1),
				"ExampleProviderSpec", "ExampleProviderConfig", 1)+"}")
			input.Module = aliased
			served, err := ModuleFor(catalog, input.Machine, "")
			if want == "" {
				if !IsFieldError(err) {
					t.Errorf("got %v, %v, want a group that the module does not serve to be refused", served, err)
				}
				return
			}
			if err != nil || served != aliased {
				t.Fatalf("got %v, %v, want the module", served, err)
			}
			warnings, err := Check(input)
			wanted := []Warning{{Path: "spec.providerSpec.value.kind", Message: "incorrect GroupVersionKind for " +
				"ExampleProviderSpec object: " + want + "; write kind: ExampleProviderSpec", Advice: true}}
			if diff := cmp.Diff(wanted, warnings); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAKindInAnotherVersionIsServedAndWarnedOf(t *testing.T) {
	example := exampleModule(t)
	catalog, err := module.NewCatalog(example, kubemarkModule(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ version, want string }{
		"another version": {`"apiVersion":"example.io/v2",`, "example.io/v2, Kind=ExampleProviderSpec"},
		"another group":   {`"apiVersion":"other.io/v1",`, "other.io/v1, Kind=ExampleProviderSpec"},
		"no version":      {``, "/, Kind=ExampleProviderSpec"},
		"no such thing":   {`"apiVersion":"a/b/c",`, "/, Kind=ExampleProviderSpec"},
	} {
		t.Run(name, func(t *testing.T) {
			input := inputWith(t, "{"+tc.version+strings.TrimPrefix(valid, `{"apiVersion":"example.io/v1",`)+"}")
			if served, err := ModuleFor(catalog, input.Machine, ""); err != nil || served != example {
				t.Fatalf("it is served by %v (%v)", served, err)
			}
			warnings, err := Check(input)
			want := []Warning{{Path: "spec.providerSpec.value.apiVersion",
				Message: "incorrect GroupVersionKind for ExampleProviderSpec object: " + tc.want, Advice: true}}
			if diff := cmp.Diff(want, warnings); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	t.Run("a version that is no text", func(t *testing.T) {
		_, err := ModuleFor(catalog, machineWith(strings.Replace(valid, `"example.io/v1"`, "1", 1)+"}"), "")
		if !IsFieldError(err) {
			t.Errorf("got %v, want it refused", err)
		}
	})
	t.Run("a kind that two modules have", func(t *testing.T) {
		other := moduleOf(t,
			map[string]string{"module.yaml": strings.NewReplacer("name: example", "name: other", "example.io/v1",
				"other.io/v1").
				Replace(readFile(t, "testdata/module/module.yaml"))})
		both, err := module.NewCatalog(example, other)
		if err != nil {
			t.Fatal(err)
		}
		if served, err := ModuleFor(both, machineWith(valid+"}"), ""); err != nil || served != example {
			t.Errorf("its own version is served by %v (%v)", served, err)
		}
		if served, err := ModuleFor(both, machineWith(strings.Replace(valid, "example.io/v1", "example.io/v2", 1)+"}"),
			""); served != nil || !IsFieldError(err) {
			t.Errorf("got %v and %v, want another version to be refused", served, err)
		}
	})
}
