package render

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

// stackStart begins a providerSpec of the kind for any stack. Append more fields.
const stackStart = `{"apiVersion":"machine-iac.io/v1alpha1","kind":"PulumiMachineProviderSpec","stack":"example"`

// someLocals use all variables.
const someLocals = `locals {
  size  = { for name in [var.provider_spec.size] : name => length(name) }
  all   = jsonencode(var.provider_spec)
  pairs = concat(values(local.size), [for name, value in var.machine.labels : "${name}=${value}"])
}
`

const stackProgram = `name: example
runtime: yaml
config:
  machine: {type: object}
  provider_spec: {type: object}
  user_data: {type: string, secret: true}
resources:
  this:
    type: acme:index:Server
outputs: {provider_id: "", instance_id: "", instance_state: "", addresses: [], instance_type: "", region: "", zone: ""}
`

// stackWith returns a stack with the validations' variables, and locals.
func stackWith(t testing.TB, locals string) *module.Module {
	t.Helper()
	files := fstest.MapFS{}
	example := os.DirFS("testdata/module")
	err := fs.WalkDir(example, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) == ".tf" || path.Ext(name) == ".hcl" {
			return err
		}
		content, err := fs.ReadFile(example, name)
		files[name] = &fstest.MapFile{Data: content}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	program := stackProgram
	if locals != "" {
		files["locals.tf"] = &fstest.MapFile{Data: []byte(locals)}
		program = strings.Replace(program, "config:\n", "config:\n  locals: {type: object}\n", 1)
	}
	for name, content := range map[string]string{
		"module.yaml": strings.NewReplacer("spec:\n", "spec:\n  engine: Pulumi\n",
			"  providerSpecs:\n    - apiVersions: [example.io/v1]\n      kind: ExampleProviderSpec\n", "").
			Replace(readFile(t, "testdata/module/module.yaml")),
		"variables.tf":   readFile(t, validationsFile),
		"Pulumi.yaml":    program,
		"sdks/acme.yaml": "packageDeclarationVersion: 1\nname: acme\nversion: 1.0.0\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	loaded, err := load.Module(files)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// asStack converts a providerSpec of a module's own kind to one that names a stack.
func asStack(t testing.TB, own []byte, hoist bool) []byte {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(asGeneric(t, own, "example", hoist), &fields); err != nil {
		t.Fatal(err)
	}
	fields["kind"], fields["stack"] = json.RawMessage(`"PulumiMachineProviderSpec"`), fields["module"]
	delete(fields, "module")
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestAStackIsRenderedAsAModuleWithItsVariables(t *testing.T) {
	from, stack := moduleWith(t, readFile(t, validationsFile)), stackWith(t, someLocals)
	for name, tc := range validationCases {
		for _, hoist := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				input := tc.input(t, from)
				own := input.Machine.Spec.ProviderSpec.Value.Raw
				input.Machine.Spec.ProviderSpec.Value.Raw = asGeneric(t, own, "example", hoist)
				want, wantErr := Render(input)
				_, wantCheck := Check(input)
				input.Module, input.Machine.Spec.ProviderSpec.Value.Raw = stack, asStack(t, own, hoist)
				got, err := Render(input)
				_, check := Check(input)
				if diff := cmp.Diff(ofStack(errorLines(t, wantErr)), errorLines(t, err)); diff != "" {
					t.Errorf("errors (-module +stack):\n%s", diff)
				}
				if diff := cmp.Diff(ofStack(errorLines(t, wantCheck)), errorLines(t, check)); diff != "" {
					t.Errorf("errors of the check (-module +stack):\n%s", diff)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-module +stack):\n%s", diff)
				}
			})
		}
	}
}

// ofStack converts errors about a module to errors about a stack.
func ofStack(lines []string) []string {
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, `the module "example"`, `the stack "example"`)
	}
	return lines
}

func TestAMachineIsServedByTheEngineThatItsKindNames(t *testing.T) {
	for name, tc := range map[string]struct {
		raw  string
		from *module.Module
		want string
	}{
		"a stack is named, and a module holds the Machine": {
			raw: stackStart + `,"values":{"size":"small"},"credentialsSecret":{"name":"c"}}`, from: exampleModule(t),
			want: `spec.providerSpec.value.kind: it names a stack, but the Machine is served by the module "example"; name the kind TerraformMachineProviderSpec`,
		},
		"a module is named, and a stack holds the Machine": {
			raw: genericStart + `,"values":{"size":"small"},"credentialsSecret":{"name":"c"}}`, from: stackWith(t, ""),
			want: `spec.providerSpec.value.kind: it names a provider module, but the Machine is served by the stack "example"; name the kind PulumiMachineProviderSpec`,
		},
		"another stack is named": {
			raw: strings.Replace(stackStart, "example", "other", 1) + `}`, from: stackWith(t, ""),
			want: `spec.providerSpec.value.stack: it names the stack "other", but the Machine is served by "example"; name that one`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			input := inputWith(t, tc.raw)
			input.Module = tc.from
			if _, err := Check(input); textOf(err) != tc.want {
				t.Errorf("want %q, got %v", tc.want, err)
			}
			if _, err := Render(input); textOf(err) != tc.want {
				t.Errorf("Render: want %q, got %v", tc.want, err)
			}
		})
	}
}

func TestWhatAStackCannotComputeIsRefusedBeforeItsRun(t *testing.T) {
	const at = "spec.providerSpec.value.values"
	for name, tc := range map[string]struct {
		local, labels string
		want          string
	}{
		"the field is named, with the reason": {
			local: `a = parseint(var.provider_spec.size, 10)`,
			want: at +
				`.size: the stack "example" cannot compute local.a: Invalid function argument: Invalid value for "number" parameter: ` +
				`cannot parse "small" as a base 10 integer; change it to what local.a can be made of (locals.tf:1 of the stack)`,
		},
		"a field that others are made of is named": {
			local: "b = lower(var.provider_spec.size)\na = parseint(local.b, 10)",
			want: at +
				`.size: the stack "example" cannot compute local.a: Invalid function argument: Invalid value for "number" parameter: ` +
				`cannot parse "small" as a base 10 integer; change it to what local.a can be made of (locals.tf:2 of the stack)`,
		},
		"what looks secret is not quoted": {
			local: `a = parseint(var.provider_spec.credentialsSecret.name, 10)`,
			want: at +
				`.credentialsSecret.name: the stack "example" cannot compute local.a: Invalid function argument; ` +
				`change it to what local.a can be made of (locals.tf:1 of the stack)`,
		},
		"nor is what a whole object holds of such": {
			local: `a = parseint(jsonencode(var.provider_spec), 10)`,
			want: at + `: the stack "example" cannot compute local.a: Invalid function argument; ` +
				`change it to what local.a can be made of (locals.tf:1 of the stack)`,
		},
		"what depends on a Machine that is yet to be made is left open": {
			local: `a = parseint(var.machine.uid, 36)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			input := inputWith(t, stackStart+`,"values":{"size":"small","shelf":""},"credentialsSecret":{"name":"c"}}`)
			input.Module, input.Machine.UID = stackWith(t, "locals {\n  "+tc.local+"\n}\n"), ""
			want := strings.NewReplacer("locals.tf:1", "locals.tf:2", "locals.tf:2", "locals.tf:3").Replace(tc.want)
			if _, err := Check(input); textOf(err) != want {
				t.Errorf("(-want +got):\n%s", cmp.Diff(want, textOf(err)))
			}
		})
	}
}

func TestTheKindOfAStackIsReportedWithItsFields(t *testing.T) {
	input := inputWith(t,
		stackStart+
			`,"module":"example","values":{"size":"small","shelf":""},"credentialsSecret":{"name":"c"},"driftPolicy":"Ignore"}`)
	input.Module = stackWith(t, "")
	input.Machine.Annotations = map[string]string{v1alpha1.DriftPolicyAnnotation: "Repair"}
	want := []Warning{
		{Path: "spec.providerSpec.value.module", Message: "unknown field, ignored", Unknown: true},
		{
			Path:    `metadata.annotations["machine-iac.io/drift-policy"]`,
			Message: "it has no effect beside a PulumiMachineProviderSpec", Hint: "set driftPolicy in the providerSpec",
		},
	}
	got, err := Check(input)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if policy, err := DriftPolicy(input.Machine); err != nil || policy != v1alpha1.DriftIgnore {
		t.Errorf("drift policy %q, %v, want that of the field", policy, err)
	}
	if got := ValuesPath(input.Machine); got != genericValuesPath {
		t.Errorf("values stand at %s", got)
	}
}
