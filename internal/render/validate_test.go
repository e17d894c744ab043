package render

import (
	stdcmp "cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

const validationsFile = "testdata/validations/variables.tf"

// moduleWith returns the example module with other variables.
func moduleWith(t testing.TB, variables string) *module.Module {
	t.Helper()
	return moduleOf(t, map[string]string{"variables.tf": variables})
}

// moduleOf returns the example module with other files.
func moduleOf(t testing.TB, changed map[string]string) *module.Module {
	t.Helper()
	files := fstest.MapFS{}
	example := os.DirFS("testdata/module")
	err := fs.WalkDir(example, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(example, name)
		files[name] = &fstest.MapFile{Data: content}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range changed {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	loaded, err := load.Module(files)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// validationCase is an input of the module in testdata/validations, and the expected errors.
type validationCase struct {
	// fields are appended to the required ones, size and credentialsSecret, or replace them.
	fields string
	// name is the Machine's; defaults to "worker-1".
	name     string
	userData string
	labels   map[string]string
	want     []string // one error a line; empty if accepted
}

// validationCases are also tried with the engine.
var validationCases = map[string]validationCase{
	"only what is required": {},
	"every field": {
		fields: `"size":"large","cpu":8,"memory":"1","region":"r-1","zone":"z-1","placement":{"zone":"z-2"},"disks":[{"gib":1},{"gib":2.5,"type":"hdd","labels":{"a":"b"}}],` +
			`"labels":{"team":"a","cost":"b"},"networks":["net-b","net-a","net-b"],"cidr":"10.0.0.0/8","image":"ami-1","password":"12345678","quota":1,"shelf":"s-1",` +
			`"suffix":"-x","window":{"start":1,"end":2}`,
		userData: "#!/bin/sh\n",
	},
	"null is left out": {
		fields: `"cpu":null,"disks":null,"placement":null,"password":null,"window":null`},
	"a number as a text":                {fields: `"cpu":"8","quota":"0.5"`},
	"a number past 2^53":                {fields: `"cpu":9007199254740993`},
	"a loop leaves an element out":      {fields: `"disks":[{"gib":1,"labels":{"free":"as long as it wants"}}]`},
	"try takes the error for no matter": {fields: `"quota":null`},
	"an object of defaults":             {fields: `"window":{"start":1,"end":"2"}`},
	"a choice that is not offered": {
		fields: `"size":"huge"`,
		want: []string{
			`spec.providerSpec.value.size: the module "example" does not allow "huge"; size is small or large, not huge.`},
	},
	"the first half of a condition": {
		fields: `"cpu":0`,
		want: []string{
			`spec.providerSpec.value.cpu: the module "example" does not allow 0; cpu is a whole number: write it as cpu: 4.`},
	},
	"the second half of a condition": {
		fields: `"cpu":1.5`,
		want: []string{
			`spec.providerSpec.value.cpu: the module "example" does not allow 1.5; cpu is a whole number: write it as cpu: 4.`},
	},
	"a text that does not match": {
		fields: `"memory":"16 GB"`,
		want: []string{
			`spec.providerSpec.value.memory: the module "example" does not allow "16 GB"; Write it as memory: 16Gi.`},
	},
	"a text with a newline": {
		fields: `"memory":"16Gi\n"`,
		want: []string{
			`spec.providerSpec.value.memory: the module "example" does not allow "16Gi\n"; Write it as memory: 16Gi.`},
	},
	"one of several fields in a loop": {
		fields: `"region":"r-1","zone":"Z"`,
		want: []string{
			`spec.providerSpec.value.zone: the module "example" does not allow "Z"; region and zone are lower-case.`},
	},
	"each of several fields in a loop": {
		fields: `"region":"R","zone":"Z"`,
		want: []string{
			`spec.providerSpec.value.region: the module "example" does not allow "R"; region and zone are lower-case.`,
			`spec.providerSpec.value.zone: the module "example" does not allow "Z"; region and zone are lower-case.`,
		},
	},
	"a field of a nested object": {
		fields: `"placement":{"zone":"z-3"}`,
		want: []string{
			`spec.providerSpec.value.placement.zone: the module "example" does not allow "z-3"; Zones are z-1 and z-2.`},
	},
	"fields of elements": {
		fields: `"disks":[{"gib":1},{"gib":0},{"gib":4,"type":"tape"}]`,
		want: []string{
			`spec.providerSpec.value.disks[1].gib: the module "example" does not allow 0; A disk has at least 1 GiB and is ssd or hdd.`,
			`spec.providerSpec.value.disks[2].type: the module "example" does not allow "tape"; A disk has at least 1 GiB and is ssd or hdd.`,
		},
	},
	"values of a map in elements": {
		fields: `"disks":[{"gib":1,"labels":{"a":"short","b/c":"too long"}}]`,
		want: []string{
			`spec.providerSpec.value.disks[0].labels["b/c"]: the module "example" does not allow "too long"; Labels of disks have at most 5 characters.`,
		},
	},
	"an element of a set": {
		fields: `"networks":["net-a","lan"]`,
		want: []string{
			`spec.providerSpec.value.networks: the module "example" does not allow "lan"; Networks begin with net-.`},
	},
	"keys of a map": {
		fields: `"labels":{"colour":"red"}`,
		want: []string{
			`spec.providerSpec.value.labels: the module "example" does not allow the value; Labels are team and cost.`},
	},
	"can": {
		fields: `"cidr":"10.0.0.0/33"`,
		want: []string{
			`spec.providerSpec.value.cidr: the module "example" does not allow "10.0.0.0/33"; Write a prefix, for example cidr: 10.0.0.0/16.`},
	},
	"a condition that fails for the value": {
		fields: `"image":"debian"`,
		want: []string{
			`spec.providerSpec.value.image: the module "example" cannot check it: Error in function call: Call to function "regex" failed: ` +
				`pattern did not match any part of the given string; An image begins with ami-.`,
		},
	},
	"a condition that fails for what is left out": {
		fields: `"window":{"start":1}`,
		want: []string{
			`spec.providerSpec.value.window: the module "example" cannot check it: Operation failed: Error during operation: argument must not be null; ` +
				`A window ends after it starts.`,
		},
	},
	"null where a function takes none": {
		fields: `"shelf":null`,
		want: []string{
			`spec.providerSpec.value.shelf: the module "example" cannot check it: Invalid function argument: Invalid value for "value" parameter: ` +
				`argument must not be null; The shelf s-0 is full; leave it empty for any.`,
		},
	},
	"a message that fails for a value that would be allowed": {
		fields: `"shelf":"s-9"`,
		want: []string{
			`spec.providerSpec.value.shelf: the module "example" cannot check it: Invalid template interpolation value: ` +
				`The expression result is null. Cannot include a null value in a string template; the validation is in variables.tf:115 of the module`,
		},
	},
	"a secret is not shown": {
		fields: `"password":"hunter2"`,
		want: []string{
			`spec.providerSpec.value.password: the module "example" does not allow the value; the validation is in variables.tf:105 of the module`},
	},
	"try": {
		fields: `"quota":-1`,
		want:   []string{`spec.providerSpec.value.quota: the module "example" does not allow -1; A quota is positive.`},
	},
	"a field together with the Machine's name": {
		fields: `"suffix":"-0123456789-0123456789"`,
		want: []string{
			`spec.providerSpec.value.suffix: the module "example" does not allow "-0123456789-0123456789" with metadata.name "worker-1"; Write a shorter suffix.`,
		},
	},
	"the Machine's name": {
		name: "worker-0123456789-0123",
		want: []string{
			`metadata.name: the module "example" does not allow "worker-0123456789-0123"; Give the MachineSet a shorter name.`},
	},
	"the Machine's labels": {
		name: "infra-1", labels: map[string]string{"tier": "low"},
		want: []string{
			`metadata: the module "example" does not allow labels.tier "low" with name "infra-1"; Begin the name with worker-.`},
	},
	"user data": {
		fields: `"userDataSecret":{"name":"u"}`, userData: "echo s3cret",
		want: []string{
			`spec.providerSpec.value.userDataSecret.name: the module "example" does not allow the value; User data begins with #!/bin/sh or #cloud-config.`},
	},
}

func (c validationCase) input(t testing.TB, from *module.Module) Input {
	t.Helper()
	input := inputWith(t, "")
	fields := map[string]json.RawMessage{}
	required := `{"apiVersion":"example.io/v1","kind":"ExampleProviderSpec","size":"small","shelf":"","credentialsSecret":{"name":"c"}}`
	for _, raw := range []string{required, "{" + c.fields + "}"} {
		if err := json.Unmarshal([]byte(raw), &fields); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	input.Machine = machineWith(string(raw))
	if c.name != "" {
		input.Machine.Name = c.name
	}
	input.Machine.Labels = c.labels
	input.Module, input.UserData = from, []byte(c.userData)
	return input
}

func errorLines(t testing.TB, err error) []string {
	t.Helper()
	var failed Errors
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &failed):
		t.Fatal(err)
	}
	lines := make([]string, 0, len(failed))
	for _, one := range failed {
		lines = append(lines, one.Error())
	}
	return lines
}

func TestRenderChecksTheValidations(t *testing.T) {
	from := moduleWith(t, readFile(t, validationsFile))
	for name, tc := range validationCases {
		t.Run(name, func(t *testing.T) {
			_, err := Render(tc.input(t, from))
			if diff := cmp.Diff(tc.want, errorLines(t, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEngineAgreesWithTheValidations(t *testing.T) {
	variables := readFile(t, validationsFile)
	from := moduleWith(t, variables)
	e := newEngine(t, map[string]string{"variables.tf": variables})
	for name, tc := range validationCases {
		t.Run(name, func(t *testing.T) {
			input := tc.input(t, from)
			_, err := Render(input)
			if accepted, message := e.accepts(t, asWritten(t, input)); accepted != (err == nil) {
				t.Errorf("the engine accepts: %t, but Render returns %v\n%s", accepted, err, message)
			}
		})
	}
}

// asWritten returns variables as the user wrote them, for the engine to convert and default.
func asWritten(t testing.TB, input Input) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"machine": map[string]any{
			"name": input.Machine.Name, "namespace": "n", "uid": "u", "cluster_id": "demo",
			"labels": input.Machine.Labels,
		},
		"provider_spec": json.RawMessage(input.Machine.Spec.ProviderSpec.Value.Raw),
		"user_data":     string(input.UserData),
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestEngineAgreesOnKubemark varies the example of a shipped module.
func TestEngineAgreesOnKubemark(t *testing.T) {
	tests := map[string]struct {
		fields, name string
		want         string // the path of the only error
	}{
		"the example":            {},
		"numbers as texts":       {fields: `"cpu":"0.5","pods":"250"`},
		"no processors":          {fields: `"cpu":0`, want: "spec.providerSpec.value.cpu"},
		"a quantity with a unit": {fields: `"memory":"16 GB"`, want: "spec.providerSpec.value.memory"},
		"half a pod":             {fields: `"pods":1.5`, want: "spec.providerSpec.value.pods"},
		"no pod":                 {fields: `"pods":0`, want: "spec.providerSpec.value.pods"},
		"another architecture":   {fields: `"architecture":"mips"`, want: "spec.providerSpec.value.architecture"},
		"no instance type":       {fields: `"instanceType":""`, want: "spec.providerSpec.value.instanceType"},
		"a zone with a blank":    {fields: `"zone":"zone a"`, want: "spec.providerSpec.value.zone"},
		"no zone":                {fields: `"zone":null,"region":""`},
		"an effect that is none": {
			fields: `"taints":[{"key":"a","effect":"NoSchedule"},{"key":"b","effect":"Never"}]`,
			want:   "spec.providerSpec.value.taints[1].effect",
		},
		"a name too long for a label": {name: strings.Repeat("a", 64), want: "metadata.name"},
	}
	from := kubemarkModule(t)
	e := newEngine(t, map[string]string{"variables.tf": readFile(t, kubemarkFolder+"/variables.tf")})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			input := Input{
				Machine: kubemarkMachine(t), Module: from,
				Credentials: map[string][]byte{"server": []byte("s"), "token": []byte("t"), "ca.crt": []byte("c")},
			}
			input.Machine.Name = stdcmp.Or(tc.name, "hollow-1")
			fields := map[string]json.RawMessage{}
			for _, raw := range []string{string(input.Machine.Spec.ProviderSpec.Value.Raw), "{" + tc.fields + "}"} {
				if err := json.Unmarshal([]byte(raw), &fields); err != nil {
					t.Fatal(err)
				}
			}
			raw, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			input.Machine.Spec.ProviderSpec.Value.Raw = raw
			_, err = Render(input)
			var failed Errors
			if errors.As(err, &failed) != (tc.want != "") || tc.want != "" &&
				(len(failed) != 1 || failed[0].Path != tc.want) {
				t.Errorf("want an error at %q, got %v", tc.want, err)
			}
			if accepted, message := e.accepts(t, asWritten(t, input)); accepted != (err == nil) {
				t.Errorf("the engine accepts: %t, but Render returns %v\n%s", accepted, err, message)
			}
		})
	}
}

func TestRenderValidatesForManyAtOnce(t *testing.T) {
	from := moduleWith(t, readFile(t, validationsFile))
	var group sync.WaitGroup
	for range 8 {
		for name, tc := range validationCases {
			group.Go(func() {
				if _, err := Render(tc.input(t, from)); (err == nil) != (len(tc.want) == 0) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	group.Wait()
}

func TestWrongTypesAndFailedValidationsAreReportedAtOnce(t *testing.T) {
	from := moduleWith(t, readFile(t, validationsFile))
	_, err := Render(validationCase{fields: `"size":[],"cpu":"four","memory":"x","disks":[{"gib":[]},{}]`}.input(t,
		from))
	want := []string{
		`spec.providerSpec.value.cpu: a number is required, but "four" is a string; write it as cpu: 4`,
		`spec.providerSpec.value.disks[0].gib: a number is required, but it is a list; write it as gib: 4`,
		`spec.providerSpec.value.disks[1].gib: a number is required, but it is missing; add gib: 4`,
		`spec.providerSpec.value.size: a string is required, but it is a list; write it as size: "text"`,
		`spec.providerSpec.value.memory: the module "example" does not allow "x"; Write it as memory: 16Gi.`,
	}
	if diff := cmp.Diff(want, errorLines(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValidationErrorsShowNoSecretsAndStayShort(t *testing.T) {
	from := moduleWith(t, strings.NewReplacer(
		`description = "The fields of the providerSpec."`, "description = \"The fields of the providerSpec.\"\n  "+
			"sensitive = true",
		", not ${var.provider_spec.size}.", "", `${var.provider_spec.shelf == "s-9" ? null : "s-0"}`, "s-0",
		`var.provider_spec.password == null ? "Write one." : "The password ${var.provider_spec.password} is too short."`, `"It is too short."`,
	).Replace(readFile(t, validationsFile)))
	tests := map[string]struct {
		fields, userData string
	}{
		"a field of a sensitive variable":                 {fields: `"memory":"hunter2"`},
		"a choice of a sensitive variable":                {fields: `"size":"hunter2"`},
		"an element of a sensitive variable":              {fields: `"networks":["hunter2"]`},
		"a condition that cannot be evaluated for a text": {fields: `"image":"hunter2"`},
		"user data": {fields: `"userDataSecret":{"name":"u"}`, userData: "hunter2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Render(validationCase{fields: tc.fields, userData: tc.userData}.input(t, from))
			if err == nil || strings.Contains(err.Error(), "hunter2") || len(err.Error()) > 300 {
				t.Errorf("want an error without secrets, got %v", err)
			}
		})
	}
	from = moduleWith(t, readFile(t, validationsFile))
	_, err := Render(validationCase{fields: `"size":"` + strings.Repeat("é", 1<<19) + `","image":"` +
		strings.Repeat("x", 1<<19) + `"`}.input(t, from))
	if err == nil || len(err.Error()) > 6000 {
		t.Errorf("want a short error, got %d bytes", len(err.Error()))
	}
}
