package module_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// statedSize is a module whose providerSpec states its size in fields.
func statedSize(capacity string) []moduletest.Change {
	return []moduletest.Change{
		{"module.yaml", "    path: size\n    instanceTypes:\n      - name: small\n        cpu: \"2\"\n        memory: 4Gi\n", capacity},
		{"variables.tf", "    size              = string\n", "    size = optional(string)\n    cores = optional(number)\n    sockets = optional(number)\n" +
			"    memory = optional(string)\n    memoryMiB = optional(number)\n    gpus = optional(number)\n    arch = optional(string)\n"},
	}
}

const (
	fromFields = "    fields: {cpu: [sockets, cores], memory: memoryMiB, memoryUnit: Mi, gpu: gpus, architecture: arch}\n"
	fromLabels = "    fields: {cpu: [cores], memory: memory}\n    labels: {topology.kubernetes.io/zone: '{lower:size}-{arch}', topology.kubernetes.io/region: '{arch}', gpus: '{gpus}'}\n"
	fromBoth   = "    path: size\n    instanceTypes:\n      - {name: small, cpu: 2, memory: 4Gi, gpu: 1, architecture: arm64}\n    fields: {cpu: [cores], memory: memory}\n"
	withGPUs   = "    path: size\n    instanceTypes:\n      - {name: small, cpu: 2, memory: 4Gi, gpu: 1, architecture: arm64}\n    fields: {attachedGPUs: disks.gib}\n"
)

func spec(fields map[string]cty.Value) cty.Value {
	all := map[string]cty.Value{
		"size": cty.NullVal(cty.String), "cores": cty.NullVal(cty.Number), "sockets": cty.NullVal(cty.Number), "memory": cty.NullVal(cty.String),
		"memoryMiB": cty.NullVal(cty.Number), "gpus": cty.NullVal(cty.Number), "arch": cty.NullVal(cty.String),
		"disks": cty.NullVal(cty.DynamicPseudoType),
	}
	for name, value := range fields {
		all[name] = value
	}
	return cty.ObjectVal(all)
}

func TestSize(t *testing.T) {
	number, text := cty.NumberIntVal, cty.StringVal
	ofType := func(name string) map[string]string {
		return map[string]string{"node.kubernetes.io/instance-type": name}
	}
	sized := func(fields map[string]cty.Value) map[string]cty.Value {
		fields["cores"], fields["memory"] = number(1), text("1Gi")
		return fields
	}
	disks := func(first, second int64) cty.Value {
		return cty.ListVal([]cty.Value{
			cty.ObjectVal(map[string]cty.Value{"gib": number(first)}), cty.ObjectVal(map[string]cty.Value{"gib": number(second)}),
		})
	}
	tests := map[string]struct {
		capacity string
		fields   map[string]cty.Value
		want     *module.Size
		wantErr  string
	}{
		"an instance type is looked up in the catalogue": {
			capacity: fromBoth, fields: map[string]cty.Value{"size": text("small")}, want: &module.Size{CPU: 2, MemoryMiB: 4096, GPU: 1, Architecture: "arm64", Labels: ofType("small")},
		},
		"an instance type that nobody knows is named with the fix": {
			capacity: fromBoth, fields: map[string]cty.Value{"size": text("huge")},
			wantErr: `size: the module "example" does not know the size of the instance type "huge"; add it to the module's module.yaml, or use another type`,
		},
		"an instance type that is missing is named": {
			capacity: fromBoth, wantErr: "size: the instance type is required to determine the size; set it",
		},
		"what a field states wins over the catalogue": {
			capacity: fromBoth, fields: map[string]cty.Value{"size": text("small"), "cores": number(3)}, want: &module.Size{CPU: 3, MemoryMiB: 4096, GPU: 1, Architecture: "arm64", Labels: ofType("small")},
		},
		"fields that state all of it need no catalogue": {
			capacity: fromBoth, fields: map[string]cty.Value{"size": text("custom"), "cores": number(3), "memory": text("1Gi")},
			want: &module.Size{CPU: 3, MemoryMiB: 1024, Architecture: "amd64", Labels: ofType("custom")},
		},
		"fields that state half of it do not make up for an unknown type": {
			capacity: fromBoth, fields: map[string]cty.Value{"size": text("custom"), "cores": number(3)}, wantErr: `the instance type "custom"`,
		},
		"fields are multiplied and counted in their unit": {
			capacity: fromFields, fields: map[string]cty.Value{"sockets": number(2), "cores": number(8), "memoryMiB": number(16384), "gpus": number(1), "arch": text("arm64")},
			want: &module.Size{CPU: 16, MemoryMiB: 16384, GPU: 1, Architecture: "arm64"},
		},
		"half a processor is none, so that no Pod waits for it": {
			capacity: fromFields, fields: map[string]cty.Value{"sockets": number(1), "cores": cty.NumberFloatVal(0.5), "memoryMiB": cty.NumberFloatVal(1024.5)},
			want: &module.Size{CPU: 0, MemoryMiB: 1024, Architecture: "amd64"},
		},
		"a field that is missing is named": {
			capacity: fromFields, fields: map[string]cty.Value{"sockets": number(1), "cores": number(1)}, wantErr: "memoryMiB: required to determine the size; set it",
		},
		"processors that are missing are named": {
			capacity: fromFields, fields: map[string]cty.Value{"memoryMiB": number(1)}, wantErr: "sockets and cores: required",
		},
		"a negative count is refused": {
			capacity: fromFields, fields: map[string]cty.Value{"sockets": number(-1), "cores": number(1), "memoryMiB": number(1)},
			wantErr: "sockets: not a valid count; write a number, for example 4",
		},
		"a count that cannot be true is refused": {
			capacity: fromFields, fields: map[string]cty.Value{"sockets": number(1), "cores": number(1 << 40), "memoryMiB": number(1)}, wantErr: "cores: not a valid count",
		},
		"memory with a unit of its own is refused where the field counts": {
			capacity: "    fields: {cpu: [cores], memory: memory, memoryUnit: Mi}\n", fields: map[string]cty.Value{"cores": number(1), "memory": text("1Gi")},
			wantErr: "memory: not a valid amount of memory; write the number of Mi",
		},
		"memory of zero is refused": {
			capacity: fromBoth, fields: map[string]cty.Value{"size": text("small"), "memory": text("0")}, wantErr: "memory: not a valid amount of memory; write a quantity",
		},
		"an architecture that no label takes is refused": {
			capacity: fromFields, fields: map[string]cty.Value{"sockets": number(1), "cores": number(1), "memoryMiB": number(1), "arch": text("a,b=c")},
			wantErr: "arch: not a valid value of the label kubernetes.io/arch",
		},
		"labels are of the fields that have values": {
			capacity: fromLabels, fields: sized(map[string]cty.Value{"size": text("East"), "arch": text("Mixed")}),
			want: &module.Size{CPU: 1, MemoryMiB: 1024, Architecture: "amd64", Labels: map[string]string{
				"topology.kubernetes.io/zone": "east-Mixed", "topology.kubernetes.io/region": "Mixed",
			}},
		},
		"a label of a field that is empty is left out": {
			capacity: fromLabels, fields: sized(map[string]cty.Value{"size": text("east"), "arch": text(""), "gpus": number(2)}),
			want: &module.Size{CPU: 1, MemoryMiB: 1024, Architecture: "amd64", Labels: map[string]string{"gpus": "2"}},
		},
		"GPUs that are attached are added up": {
			capacity: withGPUs, fields: map[string]cty.Value{"size": text("small"), "disks": disks(2, 3)},
			want: &module.Size{CPU: 2, MemoryMiB: 4096, GPU: 6, Architecture: "arm64", Labels: ofType("small")},
		},
		"a negative number of them is refused": {
			capacity: withGPUs, fields: map[string]cty.Value{"size": text("small"), "disks": disks(2, -3)},
			wantErr: "disks.gib: not a valid count; write a number, for example 1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := module.SizeOf(moduletest.Load(t, statedSize(tc.capacity)...), spec(tc.fields))
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAModuleWithoutASizeIsNoError(t *testing.T) {
	loaded := moduletest.Load(t, moduletest.Change{"module.yaml", "  capacity:\n    path: size\n    instanceTypes:\n      - name: small\n        cpu: \"2\"\n        memory: 4Gi\n", ""})
	if size, err := module.SizeOf(loaded, spec(nil)); size != nil || err != nil {
		t.Errorf("got %v, %v; want nothing", size, err)
	}
}

func TestASizeFromTheInfrastructure(t *testing.T) {
	loaded := moduletest.Load(t, statedSize(withGPUs)...)
	disks := cty.TupleVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"gib": cty.NumberIntVal(3)})})
	template := spec(map[string]cty.Value{"size": cty.StringVal("huge"), "disks": disks})
	got, err := module.ReadSize(loaded, template, []byte(`{"cpu":48,"memory_mib":393216,"gpu":2,"architecture":"arm64"}`))
	want := &module.Size{CPU: 48, MemoryMiB: 393216, GPU: 5, Architecture: "arm64", Labels: map[string]string{"node.kubernetes.io/instance-type": "huge"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, output := range []string{`null`, `[]`, `{"cpu":2}`, `{"cpu":0,"memory_mib":1}`, `{"cpu":1,"memory_mib":-1}`,
		`{"cpu":1,"memory_mib":1,"gpu":-1}`, `{"cpu":1,"memory_mib":1,"architecture":"a b"}`, `{"cpu":1.5,"memory_mib":1}`} {
		if size, err := module.ReadSize(loaded, template, []byte(output)); err == nil || !strings.Contains(err.Error(), output) {
			t.Errorf("%s: got %v, %v; want an error that shows it", output, size, err)
		}
	}
}

const typesFile = `apiVersion: machine-iac.io/v1alpha1
kind: InstanceTypes
instanceTypes:
  - {name: m5.large, cpu: 2, memory: 8Gi}
  - {name: m6g.large, cpu: "2", memory: 8Gi, architecture: arm64}
  - {name: t2.odd, cpu: 1500m, memory: 1.5Gi}
`

func withFile(content string) []moduletest.Change {
	return []moduletest.Change{{"module.yaml", "    instanceTypes:", "    instanceTypesFile: capacity.yaml\n    instanceTypes:"}, {"capacity.yaml", "", content}}
}

func TestACatalogueInAFileOfItsOwn(t *testing.T) {
	loaded := moduletest.Load(t, withFile(typesFile)...)
	for name, want := range map[string]module.Size{
		"small":     {CPU: 2, MemoryMiB: 4096, Architecture: "amd64"},
		"m5.large":  {CPU: 2, MemoryMiB: 8192, Architecture: "amd64"},
		"m6g.large": {CPU: 2, MemoryMiB: 8192, Architecture: "arm64"},
		"t2.odd":    {CPU: 1, MemoryMiB: 1536, Architecture: "amd64"}, // no more than there is
	} {
		want.Labels = map[string]string{"node.kubernetes.io/instance-type": name}
		got, err := module.SizeOf(loaded, spec(map[string]cty.Value{"size": cty.StringVal(name)}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, err := module.SizeOf(loaded, spec(map[string]cty.Value{"size": cty.StringVal("m7.large")}))
	if unknown, ok := errors.AsType[*module.UnknownTypeError](err); !ok || unknown.File != "capacity.yaml" {
		t.Errorf("got %v, want an UnknownTypeError that names the file", err)
	}
	newer := moduletest.Load(t, withFile(typesFile+"  - {name: m7.large, cpu: 2, memory: 8Gi}\n")...)
	if newer.Digest() != loaded.Digest() {
		t.Error("a new catalogue looks like another module")
	}
	if _, err := loaded.Files().Open("capacity.yaml"); err == nil {
		t.Error("a run sees the catalogue, which the digest does not cover")
	}
}

func TestLoadRefusesACapacityThatCannotBeRead(t *testing.T) {
	tests := map[string]struct {
		changes []moduletest.Change
		want    string
	}{
		"neither catalogue nor fields": {
			changes: statedSize("    path: size\n"),
			want:    "module.yaml:23: spec.capacity does not describe the size; set instanceTypes, instanceTypesFile or fields, or remove it",
		},
		"fields without memory": {
			changes: statedSize("    fields:\n      cpu: [cores]\n"),
			want:    "module.yaml:24: spec.capacity.fields has no memory, and there is no catalog; name the field with the memory",
		},
		"fields without processors": {
			changes: statedSize("    fields:\n      memory: memory\n"),
			want:    "module.yaml:24: spec.capacity.fields has no cpu, and there is no catalog; name the field with the number of CPUs",
		},
		"a unit that is none": {
			changes: statedSize("    fields:\n      cpu: [cores]\n      memory: memory\n      memoryUnit: MiB\n"),
			want:    `module.yaml:27: spec.capacity.fields.memoryUnit is "MiB", which is not a suffix of a quantity; write Mi or Gi, or remove it for bytes`,
		},
		"a field that is not there": {
			changes: statedSize("    fields:\n      cpu: [cores, threads]\n      memory: memory\n"),
			want:    `module.yaml:25: spec.capacity.fields.cpu[1] is "threads", which is not a number or string field of var.provider_spec; write the path of the field, joined by dots`,
		},
		"a field that is a list": {
			changes: statedSize("    fields:\n      cpu: [cores]\n      memory: disks\n"),
			want:    `module.yaml:26: spec.capacity.fields.memory is "disks", which is not a number or string field of var.provider_spec; write the path of the field, joined by dots`,
		},
		"an architecture that is a number": {
			changes: statedSize("    fields:\n      cpu: [cores]\n      memory: memory\n      architecture: cores\n"),
			want:    `module.yaml:27: spec.capacity.fields.architecture is "cores", which is not a string field of var.provider_spec; write the path of the field, joined by dots`,
		},
		"attached GPUs that are no field of a list": {
			changes: statedSize("    fields:\n      cpu: [cores]\n      memory: memory\n      attachedGPUs: gpus\n"),
			want:    `module.yaml:27: spec.capacity.fields.attachedGPUs is "gpus", which is not a number field of a list's objects in var.provider_spec; write the path of the field, joined by dots`,
		},
		"a label of a field that is not there": {
			changes: statedSize(fromFields + "    labels: {topology.kubernetes.io/zone: '{lower:arch}-{zone}'}\n"),
			want:    `module.yaml:25: spec.capacity.labels has "{lower:arch}-{zone}" for topology.kubernetes.io/zone, which names "zone", which is not a string or number field of var.provider_spec; use {field} for the value of a field of the providerSpec, joined by dots`,
		},
		"a label of no field": {
			changes: statedSize(fromFields + "    labels: {topology.kubernetes.io/zone: arch}\n"),
			want:    `module.yaml:25: spec.capacity.labels has "arch" for topology.kubernetes.io/zone, which contains no field; use {field} for the value of a field of the providerSpec, joined by dots`,
		},
		"a key that no label has": {
			changes: statedSize(fromFields + "    labels: {a zone: '{arch}'}\n"),
			want:    `module.yaml:25: spec.capacity.labels has the key "a zone", which is not valid for a label; write for example topology.kubernetes.io/zone`,
		},
		"a path to an instance type that is not there": {
			changes: []moduletest.Change{{"module.yaml", "path: size", "path: flavor"}},
			want:    `module.yaml:24: spec.capacity.path is "flavor", which is not a string field of var.provider_spec; write the path of the field, joined by dots`,
		},
		"an architecture that no label takes": {
			changes: []moduletest.Change{{"module.yaml", "memory: 4Gi", "memory: 4Gi\n        architecture: amd 64"}},
			want:    `module.yaml:29: spec.capacity.instanceTypes[0].architecture is "amd 64", which is not a valid value of the label kubernetes.io/arch; write for example amd64 or arm64`,
		},
		"a file that is missing": {
			changes: []moduletest.Change{{"module.yaml", "    instanceTypes:", "    instanceTypesFile: capacity.yaml\n    instanceTypes:"}},
			want:    "module.yaml:25: spec.capacity.instanceTypesFile names capacity.yaml, which is missing; create it, or remove the field",
		},
		"a file elsewhere": {
			changes: []moduletest.Change{{"module.yaml", "    instanceTypes:", "    instanceTypesFile: ../capacity.yaml\n    instanceTypes:"}},
			want:    `module.yaml:25: spec.capacity.instanceTypesFile is "../capacity.yaml", which is not a YAML file next to module.yaml; use one, for example capacity.yaml`,
		},
		"a file that would hide HCL from the digest": {
			changes: []moduletest.Change{{"module.yaml", "    instanceTypes:", "    instanceTypesFile: main.tf\n    instanceTypes:"}},
			want:    `module.yaml:25: spec.capacity.instanceTypesFile is "main.tf", which is not a YAML file next to module.yaml; use one, for example capacity.yaml`,
		},
		"a file of another kind": {
			changes: withFile(strings.Replace(typesFile, "InstanceTypes", "Module", 1)),
			want:    `capacity.yaml:2: kind is "Module"; write InstanceTypes`,
		},
		"a file with an unknown field": {
			changes: withFile(strings.Replace(typesFile, "cpu: 2", "cpus: 2, cpu: 2", 1)),
			want:    `capacity.yaml:4: instanceTypes[0].cpus is invalid: unknown field "instanceTypes[0].cpus"; remove it, or correct the spelling`,
		},
		"a file that is no YAML": {
			changes: withFile("instanceTypes: [\n"),
			want:    "capacity.yaml:1: is not valid YAML: yaml: line 1: did not find expected node content",
		},
		"a file without types": {
			changes: withFile("apiVersion: machine-iac.io/v1alpha1\nkind: InstanceTypes\ninstanceTypes: []\n"),
			want:    "capacity.yaml:3: instanceTypes is empty; list the instance types, or remove the file",
		},
		"a type that module.yaml has already": {
			changes: withFile(strings.Replace(typesFile, "m5.large", "small", 1)),
			want:    `capacity.yaml:4: instanceTypes[0].name is "small", which is empty or already used; give each instance type a unique name`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.Changed(t, tc.changes...)))
			var broken *contract.Error
			if !errors.As(err, &broken) {
				t.Fatalf("want a contract.Error, got %v", err)
			}
			lines := make([]string, 0, len(broken.Breaches))
			for _, breach := range broken.Breaches {
				lines = append(lines, breach.String())
			}
			if diff := cmp.Diff(tc.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
