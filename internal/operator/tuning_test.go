package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

func TestTheControllersAreTuned(t *testing.T) {
	image := "registry.example/providers@sha256:" + strings.Repeat("0a", 32)
	in := operands.Inputs{Proxy: operands.Proxy{HTTP: "http://cluster:3128"}, Arguments: []string{"--max-concurrent-runs=3"}}
	if err := tuned(&corev1.ConfigMap{Data: map[string]string{
		"affinity": "{}", "priorityClassName": "high\n", "replicas": "3", "resources": "limits: {memory: 8Gi}",
		"env": "- {name: A, value: b}", "serviceAccountAnnotations": "example.org/role: worker", "work": "{size: 4Gi, medium: Disk}",
		"providers": "- image: " + image + "\n- {image: '" + image + "', mount: true}", "proxy": "{httpsProxy: 'http://proxy:3128', noProxy: 10.0.0.0/8}",
	}}, &in); err != nil {
		t.Fatal(err)
	}
	const no = "10.0.0.0/8,$(KUBERNETES_SERVICE_HOST),.svc"
	want := operands.Inputs{
		Placement: operands.Placement{Affinity: &corev1.Affinity{}, PriorityClassName: "high"},
		Proxy:     operands.Proxy{HTTPS: "http://proxy:3128", No: no},
		Arguments: []string{"--engine-env=HTTPS_PROXY=http://proxy:3128", "--engine-env=NO_PROXY=" + no, "--max-concurrent-runs=3"},
		Tuning: operands.Tuning{
			Replicas: ptr.To[int32](3), Env: []corev1.EnvVar{{Name: "A", Value: "b"}}, AccountAnnotations: map[string]string{"example.org/role": "worker"},
			Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")}},
			Work:      operands.Work{Size: ptr.To(resource.MustParse("4Gi")), Medium: "Disk"}, Providers: []operands.ProviderImage{{Image: image}, {Image: image, Mount: true}},
		},
	}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeTuned(t *testing.T) {
	image := "- image: x@sha256:" + strings.Repeat("0a", 32)
	for _, test := range []struct{ setting, value, want string }{
		{"nodeSelector", "- master", "invalid nodeSelector: write labels"},
		{"tolerations", "[{key: a, operatr: Exists}]", `unknown field "operatr"`},
		{"resources", "limits: {memory: much}", "invalid resources"},
		{"replicas", "0", "replicas is 0; set it to 1 or more"},
		{"replicas", "two", "invalid replicas: write a number"},
		{"env", "[{name: POD_IP, value: x}]", "env has POD_IP, which the operator sets"},
		{"work", "{medium: Tape}", `work: medium is "Tape"; set it to Memory or Disk`},
		{"work", "{size: 0}", "work: size is 0"},
		{"work", "{storageClassName: fast}", "work: storageClassName needs a size"},
		{"work", "{claim: mine}", `unknown field "claim"`},
		{"providers", "- image: registry.example/providers:v1", "name it by its digest"},
		{"providers", image, "--runs-in=jobs"},
	} {
		err := tuned(&corev1.ConfigMap{Data: map[string]string{test.setting: test.value}}, &operands.Inputs{Arguments: []string{"--runs-in=jobs"}})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %q: got %v, want %q", test.setting, test.value, err, test.want)
		}
	}
}
