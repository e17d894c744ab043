package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// FuzzProviderSpec tries any bytes as a providerSpec: of a module with every type, one with validations, one for the
// generic kind only, and a stack with locals.
func FuzzProviderSpec(f *testing.F) {
	modules := []*module.Module{exampleModule(f), moduleWith(f, readFile(f, validationsFile)), bareModule(f),
		stackWith(f, someLocals)}
	for _, tc := range validationCases {
		own := tc.input(f, modules[1]).Machine.Spec.ProviderSpec.Value.Raw
		f.Add(own)
		f.Add(asGeneric(f, own, "example", len(own)%2 == 0))
		f.Add(asStack(f, own, len(own)%2 == 1))
	}
	for _, rest := range []string{
		`}`, bare + `}`, bare + `,"userDataSecret":{"name":""}}`,
		bare + `,"userDataSecret":null,"driftPolicy":"Repair"}`, bare + `,"driftPolicy":4}`,
		`,"values":[]}`,
		`,"values":{"size":"${x}","cpu":"9007199254740993","credentialsSecret":{"name":"c"}},"credentialsSecret":{"name":"d"}}`,
		`,"values":{"size":"s","kind":"K","module":"m","credentialsSecret":[]},"credentialsSecret":{"name":"c"}}`,
		`,"module":"example"}`,
		`,"values":{"size":"s","credentialsSecret":{"name":null,"x":1}},"credentialsSecret":{"name":"c","x":{}}}`,
	} {
		f.Add([]byte(genericStart + rest))
		f.Add([]byte(stackStart + rest))
	}
	for _, rest := range []string{
		`}`, `,"cpu":1e308}`, `,"cpu":"1e999999999"}`, `,"cpu":"Inf"}`, `,"cpu":1,"cpu":2}`,
		`,"labels":{"\u00e9":"1","e\u0301":"2"}}`, `,"range":[1,-0]}`,
		`,"placement":{"zone":"${x}%{ if y }\n\"\u0000\ud800"},"disks":[{"gib":"2","labels":{"a":null}}],"networks":["a","a",1]}`,
	} {
		f.Add([]byte(valid + rest))
	}
	f.Add([]byte(valid + `,"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, from := range modules {
			checkOne(t, from, raw)
		}
	})
}

// bare continues genericStart for the module that only the generic kind serves.
const bare = `,"values":{"size":"%{ if y }\n"},"credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"}`

// FuzzStructured mutates realistic input: values become hostile, move, nest and multiply.
func FuzzStructured(f *testing.F) {
	kubemark := kubemarkModule(f)
	modules := []*module.Module{moduleWith(f, readFile(f, validationsFile)), kubemark, bareModule(f),
		stackWith(f, someLocals)}
	seeds := [][]byte{
		validationCases["every field"].input(f, modules[0]).Machine.Spec.ProviderSpec.Value.Raw,
		kubemarkMachine(f).Spec.ProviderSpec.Value.Raw,
	}
	for seed := range uint64(16) {
		f.Add(seed, uint8(1), "${var.user_data}")
		f.Add(seed, uint8(7), "9007199254740993")
	}
	f.Fuzz(func(t *testing.T, seed uint64, changes uint8, hostile string) {
		own := seed % 2
		generic, from := own, asGeneric(t, seeds[own], modules[own].Name(), seed/2%2 == 0)
		switch seed / 4 % 3 {
		case 0:
			generic, from = 2, []byte(genericStart+bare+`}`)
		case 1:
			generic, from = 3, asStack(t, seeds[0], seed/2%2 == 0)
		}
		checkOne(t, modules[own], changed(t, seeds[own], seed, changes, hostile))
		checkOne(t, modules[generic], changed(t, from, seed, changes, hostile))
	})
}

// changed returns a mutated providerSpec.
func changed(t *testing.T, spec []byte, seed uint64, changes uint8, hostile string) []byte {
	t.Helper()
	m := mutator{random: rand.New(rand.NewPCG(seed, 0)), hostile: hostile}
	decoded := decodeJSON(t, spec)
	for range changes % 16 {
		decoded = m.change(decoded, 0)
	}
	raw, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// checkOne checks a providerSpec. What Check accepts must render, and render what was given.
func checkOne(t *testing.T, from *module.Module, raw []byte) {
	input := Input{
		Machine: machineWith(""), Module: from, ClusterID: "demo",
		Credentials: map[string][]byte{"endpoint": []byte("e"), "token": []byte("t"), "server": []byte("s"),
			"ca.crt": []byte("c")},
	}
	input.Machine.Spec.ProviderSpec.Value.Raw = raw
	input.Machine.Name = "worker-1"
	if _, err := Check(input); err != nil {
		for _, one := range errorLines(t, err) {
			if len(one) > 8000 {
				t.Fatalf("want a short error, got %d bytes", len(one))
			}
		}
		return
	}
	if _, userData, err := Refs(input.Machine, from); err == nil && userData.Name != "" {
		input.UserData = []byte("#!/bin/sh\n")
	}
	inputs, err := Render(input)
	if err != nil {
		t.Fatalf("accepted, but not rendered: %v", err)
	}
	if len(raw)%4 == 0 { // rarely, since rendering is most of the work
		if again, err := Render(input); err != nil || again.Hash != inputs.Hash ||
			!bytes.Equal(again.Variables, inputs.Variables) {
			t.Fatalf("want the same result twice, got %v", err)
		}
	}
	checkRest(t, input)
	if _, err := from.Locals(inputs.Variables); err != nil {
		t.Fatalf("accepted and rendered, but: %v", err)
	}
	var variables map[string]json.RawMessage
	want := 3
	if from.Variable(module.VariableCluster).Name != "" {
		want++
	}
	if err := json.Unmarshal(inputs.Variables, &variables); err != nil || len(variables) != want {
		t.Fatalf("want the module's variables in JSON, got %v in %.500s", err, inputs.Variables)
	}
	if problem := equals("provider_spec", given(decodeJSON(t, raw)),
		decodeJSON(t, variables[module.VariableProviderSpec])); problem != "" {
		t.Fatal(problem)
	}
}

// checkRest fails if other readers reject an accepted providerSpec.
func checkRest(t *testing.T, input Input) {
	t.Helper()
	_, _, refs := Refs(input.Machine, input.Module)
	_, keys := CredentialKeys(input.Machine, input.Module)
	_, spec := ProviderSpec(input.Machine, input.Module)
	_, policy := DriftPolicy(input.Machine)
	if err := errors.Join(refs, keys, spec, policy); err != nil {
		t.Fatalf("accepted and rendered, but: %v", err)
	}
}

// given returns what a user wrote for the variable provider_spec.
func given(spec any) any {
	fields, ok := spec.(map[string]any)
	if !ok || fields["kind"] != "TerraformMachineProviderSpec" && fields["kind"] != "PulumiMachineProviderSpec" {
		return spec
	}
	values, _ := fields["values"].(map[string]any)
	all := map[string]any{}
	maps.Copy(all, values)
	for _, name := range []string{"credentialsSecret", "userDataSecret"} {
		beside, _ := fields[name].(map[string]any)
		if beside["name"] == nil {
			continue
		}
		both := map[string]any{}
		if inner, ok := all[name].(map[string]any); ok {
			maps.Copy(both, inner)
		}
		both["name"] = beside["name"]
		all[name] = both
	}
	return all
}

type mutator struct {
	random  *rand.Rand
	hostile string
}

// change mutates one place in a value.
func (m *mutator) change(value any, depth int) any {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 && m.random.IntN(8) > 0 {
			name := m.pick(value)
			if m.random.IntN(10) == 0 {
				delete(value, name)
			} else {
				value[name] = m.change(value[name], depth+1)
			}
			return value
		}
		if depth > 0 && m.random.IntN(3) == 0 {
			return m.leaf()
		}
		value[m.text()] = m.leaf()
		return value
	case []any:
		if len(value) > 0 && m.random.IntN(4) > 0 {
			i := m.random.IntN(len(value))
			value[i] = m.change(value[i], depth+1)
			return value
		}
		return append(value, m.leaf())
	default:
		return m.leaf()
	}
}

// pick returns the key with the lowest hash, because the order of maps is random.
func (m *mutator) pick(fields map[string]any) string {
	best, lowest, salt := "", uint64(0), m.random.Uint64()
	for name := range fields {
		sum := salt
		for _, char := range []byte(name) {
			sum = (sum ^ uint64(char)) * 1099511628211
		}
		if best == "" || sum < lowest {
			best, lowest = name, sum
		}
	}
	return best
}

func (m *mutator) leaf() any {
	switch m.random.IntN(12) {
	case 0:
		return nil
	case 1:
		return m.random.IntN(2) == 0
	case 2:
		return json.Number(fmt.Sprintf("%de%d", m.random.Int64()-m.random.Int64(), m.random.IntN(700)-350))
	case 3:
		return json.Number(strings.Repeat("9", 1+m.random.IntN(200)))
	case 4:
		return json.Number(fmt.Sprintf("%d.%d", m.random.Int64(), m.random.Uint64()))
	case 5:
		return json.Number(fmt.Sprint(m.random.IntN(5)))
	case 6:
		return m.nest(m.random.IntN(80))
	case 7:
		return map[string]any{m.text(): m.text(), "key": m.text(), "effect": "NoSchedule", "gib": json.Number("1"),
			"zone": "z-1", "name": "c"}
	case 8:
		return []any{m.text(), m.text()}
	case 9:
		return strings.Repeat(m.text(), m.random.IntN(1<<5))
	default:
		return m.text()
	}
}

func (m *mutator) nest(depth int) any {
	var value any = m.text()
	for range depth {
		if m.random.IntN(2) == 0 {
			value = []any{value}
		} else {
			value = map[string]any{"a": value}
		}
	}
	return value
}

func (m *mutator) text() string {
	texts := hostileTexts
	if at := m.random.IntN(len(texts) + 8); at < len(texts) {
		return texts[at]
	}
	return m.hostile
}

var hostileTexts = append(hostile(), "1", "16Gi", "z-1", "net-a", "NoSchedule", "amd64", "1e400", "1p10", "٣", "small",
	"0.1", "+1", "1.", ".5", "10.0.0.0/8")
