package render

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// soon bounds a check on a busy machine. Without limits, the inputs below take minutes, or all memory.
const soon = time.Minute

// inTime fails if a call takes too long or too much memory.
func inTime(t *testing.T, call func() error) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 512 {
			t.Errorf("it has allocated %d MiB", used)
		}
		return err
	case <-time.After(soon):
		t.Fatalf("no result in %s", soon)
		return nil
	}
}

// ofStackWith returns a providerSpec for the stack of [stackWith] with more fields.
func ofStackWith(more string) string {
	return stackStart + `,"values":{"size":"small","shelf":""` + more + `},"credentialsSecret":{"name":"c"}}`
}

func openstackStack(t testing.TB) *module.Module {
	t.Helper()
	loaded, err := load.Module(os.DirFS("../../stacks/openstack"))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// server returns a providerSpec for stacks/openstack with a network and more fields.
func server(network, more string) string {
	return `{"apiVersion":"machine-iac.io/v1alpha1","kind":"PulumiMachineProviderSpec","stack":"openstack","credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"},
		"values":{"cloudName":"openstack","flavor":"m1","image":"i","networks":[{"filter":{"name":"n"}` + network + `}]` + more + `}}`
}

func TestAProviderSpecIsCheckedInBoundedTime(t *testing.T) {
	long.Test(t)
	openstack, many := openstackStack(t), strings.Repeat(`"x",`, 4000)
	validated := moduleWith(t, readFile(t, validationsFile))
	stack := func(locals string) *module.Module { return stackWith(t, "locals {\n"+locals+"\n}\n") }
	for name, tc := range map[string]struct {
		from *module.Module
		spec string
		want []string
	}{
		"a text that reads as a large number": {from: openstack, spec: server(`,"profile":{"a":"1e300000000"}`, "")},
		"a local that makes a number of it": {
			from: stack(`size = jsonencode(tonumber(var.provider_spec.suffix))`),
			spec: ofStackWith(`,"suffix":"1e300000000"`),
			want: []string{
				`spec.providerSpec.value.values.suffix: the stack "example" cannot compute local.size: a number is larger than 2^2048, or smaller than 2^-2048; write one with a smaller exponent, or with fewer digits`},
		},
		"a local that repeats a field": {
			from: stack(
				`all = [for a in range(var.provider_spec.cpu) : [for b in range(var.provider_spec.cpu) : upper("x")]]`),
			spec: ofStackWith(`,"cpu":1000`),
			want: []string{
				`spec.providerSpec.value.values.cpu: the stack "example" cannot compute local.all: the evaluation exceeds the limit of 4000000 units of work; use shorter lists and shorter texts`},
		},
		"locals that double": {
			from: stack(doubling(12)), spec: ofStackWith(`,"cpu":100`),
			want: []string{
				`spec.providerSpec.value.values.cpu: the stack "example" cannot compute local.l10: a list or an object holds more than 100000 values; write shorter lists`},
		},
		"many values": {
			from: validated, spec: valid + `,"networks":[` + many + many + `"x"]}`,
			want: []string{
				`spec.providerSpec.value.networks[4993]: a providerSpec holds at most 5000 values, but this one holds more; write shorter lists`},
		},
		"a long text": {
			from: validated, spec: valid + `,"labels":{"a":"` + strings.Repeat("x", 3<<20) + `"}}`,
			want: []string{
				`spec.providerSpec.value: it has at most 3145728 bytes, but these are 3145853; leave out what the instance does not need`},
		},
		"depth": {
			from: validated, spec: valid + `,"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
			want: []string{`spec.providerSpec.value.x` + strings.Repeat("[0]", 63) +
				`: it nests deeper than 64 levels; write it flatter`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := inTime(t, func() error {
				_, err := Check(Input{Machine: machineWith(tc.spec), Module: tc.from, ClusterID: "demo"})
				return err
			})
			if diff := cmp.Diff(tc.want, errorLines(t, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// doubling returns locals that each contain the previous one twice.
func doubling(levels int) string {
	locals := []string{"l0 = [for n in range(var.provider_spec.cpu) : n]"}
	for level := 1; level < levels; level++ {
		locals = append(locals, fmt.Sprintf("l%d = [local.l%d, local.l%d]", level, level-1, level-1))
	}
	return strings.Join(locals, "\n")
}

func TestAValidationIsEvaluatedInBoundedTime(t *testing.T) {
	from := moduleWith(t, strings.Replace(readFile(t, validationsFile), `variable "user_data" {`,
		`variable "user_data" {
  validation {
    condition     = can(regex("^((x{1,30}){1,30}|y)$", var.user_data))
    error_message = "It has no such form."
  }
`, 1))
	input := Input{
		Machine: machineWith(valid + `,"shelf":"","userDataSecret":{"name":"u"}}`), Module: from, ClusterID: "demo",
		UserData:    []byte(strings.Repeat("x", 1<<20)),
		Credentials: map[string][]byte{"endpoint": []byte("e"), "token": []byte("t")},
	}
	err := inTime(t, func() error {
		_, err := Render(input)
		return err
	})
	want := "exceeds the limit of 4000000 units of work"
	if lines := errorLines(t, err); len(lines) != 1 || !strings.Contains(lines[0], want) || !OnlySecrets(err) {
		t.Errorf("want one error of the user data's Secret with %q, got %q", want, lines)
	}
}
