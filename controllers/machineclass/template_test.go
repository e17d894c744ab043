package machineclass

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

var (
	small = actuators.Capacity{CPU: 2, MemoryMiB: 4096, Architecture: "amd64"}
	big   = actuators.Capacity{CPU: 64, MemoryMiB: 524288, GPU: 8, Architecture: "arm64"}

	// whole is the nodeTemplate of classWith(nil).
	whole = map[string]any{
		"capacity": map[string]any{"cpu": "2", "gpu": "0", "memory": "4Gi"}, "architecture": "amd64",
		"instanceType": "small", "region": "region-a", "zone": "zone-a",
	}
)

func classWith(fields map[string]any) *unstructured.Unstructured {
	class := newClass()
	class.SetGenerateName("class-")
	class.Object["provider"] = provider
	class.Object["providerSpec"] = map[string]any{"apiVersion": "v1", "kind": "Test", "instanceType": "small", "region": "region-a", "zone": "zone-a"}
	maps.Copy(class.Object, fields)
	return class
}

func TestPlacesAreReadFromTheFieldsOfTheMachineAPI(t *testing.T) {
	for name, tc := range map[string]struct {
		spec map[string]any
		want [3]string
	}{
		"AWS":           {map[string]any{"instanceType": "m5.large", "placement": map[string]any{"region": "r", "availabilityZone": "z"}}, [3]string{"m5.large", "r", "z"}},
		"Azure":         {map[string]any{"vmSize": "Standard_D2s_V3", "location": "r", "zone": "1"}, [3]string{"Standard_D2s_V3", "r", "1"}},
		"GCP":           {map[string]any{"machineType": "n1-standard-4", "region": "r", "zone": "z"}, [3]string{"n1-standard-4", "r", "z"}},
		"OpenStack":     {map[string]any{"flavor": "m1.large", "availabilityZone": "z"}, [3]string{"m1.large", "", "z"}},
		"any module":    {map[string]any{"module": "x", "values": map[string]any{"instanceType": "a", "region": "r", "zone": "z"}}, [3]string{"a", "r", "z"}},
		"another type":  {map[string]any{"region": int64(1), "zone": []any{"z"}, "placement": "here"}, [3]string{}},
		"no values":     {map[string]any{"values": "none", "zone": "z"}, [3]string{"", "", "z"}},
		"an empty spec": {nil, [3]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, f := range fieldsOf(classWith(map[string]any{"providerSpec": tc.spec}), small) {
				got[f.path] = f.value
			}
			if found := [3]string{got["instanceType"], got["region"], got["zone"]}; found != tc.want {
				t.Errorf("it reads %q, want %q", found, tc.want)
			}
		})
	}
}

func TestTheSecretsOfTheDriverAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   string
		fields map[string]any
		want   map[string]any
	}{
		"those of MCM":       {"Test", map[string]any{"secretRef": map[string]any{"name": "worker"}}, map[string]any{"credentialsSecret": "worker", "userDataSecret": "worker"}},
		"credentials apart":  {"Test", map[string]any{"secretRef": map[string]any{"name": "worker"}, "credentialsSecretRef": map[string]any{"name": "cloud"}}, map[string]any{"credentialsSecret": "cloud", "userDataSecret": "cloud"}},
		"those of OpenStack": {"OpenstackProviderSpec", map[string]any{"secretRef": map[string]any{"name": "worker"}}, map[string]any{"cloudsSecret": "worker", "userDataSecret": "worker"}},
		"none":               {"Test", nil, map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			class := classWith(tc.fields)
			class.Object["providerSpec"].(map[string]any)["kind"] = tc.kind
			machine, err := machineFrom(class)
			if err != nil {
				t.Fatal(err)
			}
			var spec map[string]any
			if err := json.Unmarshal(machine.Spec.ProviderSpec.Value.Raw, &spec); err != nil {
				t.Fatal(err)
			}
			got := map[string]any{}
			for field, value := range spec {
				if secret, ok := value.(map[string]any); ok {
					got[field] = secret["name"]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the Secrets differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestComplete(t *testing.T) {
	class := classWith(nil)
	first, missing, err := complete(class, small)
	if err != nil || len(missing) > 0 {
		t.Fatalf("%v is missing: %v", missing, err)
	}
	if diff := cmp.Diff(any(whole), first.Object["nodeTemplate"]); diff != "" {
		t.Errorf("the nodeTemplate differs (-want +got):\n%s", diff)
	}
	if _, given := class.Object["nodeTemplate"]; given {
		t.Error("the class that was given is changed")
	}
	if again, _, err := complete(first, small); again != nil || err != nil {
		t.Errorf("a second pass writes %v, %v", again, err)
	}
	// A person takes the number of processors over.
	edited := first.DeepCopy()
	edited.Object["nodeTemplate"].(map[string]any)["capacity"].(map[string]any)["cpu"] = "1500m"
	second, _, err := complete(edited, big)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"cpu": "1500m", "gpu": "8", "memory": "512Gi"}
	if diff := cmp.Diff(any(want), second.Object["nodeTemplate"].(map[string]any)["capacity"]); diff != "" {
		t.Errorf("the capacity differs (-want +got):\n%s", diff)
	}
	if record := second.GetAnnotations()[appliedAnnotation]; strings.Contains(record, "cpu") || !strings.Contains(record, `"capacity.gpu":"8"`) {
		t.Errorf("the record is %s", record)
	}
	// Without a record all is theirs.
	second.SetAnnotations(map[string]string{appliedAnnotation: "x"})
	if third, _, err := complete(second, small); err != nil || third != nil && third.Object["nodeTemplate"].(map[string]any)["capacity"].(map[string]any)["gpu"] != "8" {
		t.Errorf("it writes %v, %v", third, err)
	}
}

func TestANodeTemplateThatCannotBeReadIsAnError(t *testing.T) {
	for want, template := range map[string]any{
		"nodeTemplate: not an object": "x",
		"nodeTemplate.capacity.cpu":   map[string]any{"capacity": "x"},
	} {
		_, _, err := complete(classWith(map[string]any{"nodeTemplate": template}), small)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}
