package install_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// rootPods need the user root, which owns the kubelet's key.
var rootPods = []string{"machine-api-termination-handler"}

// template is a Pod template in a manifest.
type template struct {
	file, owner string
	replicas    int64
	corev1.PodTemplateSpec
}

// documents calls a function with each document of the install tree except chart templates.
func documents(t *testing.T, each func(file string, document map[string]any)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "install"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil || bytes.Contains(content, []byte("{{")) { // other tests compare it with its source
			return err
		}
		for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
			var document map[string]any
			if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			each(file, document)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// templatesIn returns all Pod templates in a value, such as a Deployment or a bundle's copy.
func templatesIn(t *testing.T, file, owner string, value any) []template {
	t.Helper()
	var found []template
	switch value := value.(type) {
	case map[string]any:
		if meta, ok := value["metadata"].(map[string]any); ok && meta["name"] != nil {
			owner = fmt.Sprint(meta["name"])
		}
		if spec, ok := value["template"].(map[string]any); ok && value["selector"] != nil && hasContainers(spec) {
			one := template{file: file, owner: owner}
			one.replicas, _ = value["replicas"].(int64)
			if number, ok := value["replicas"].(float64); ok {
				one.replicas = int64(number)
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &one.PodTemplateSpec); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			found = append(found, one)
		}
		for _, inner := range value {
			found = append(found, templatesIn(t, file, owner, inner)...)
		}
	case []any:
		for _, inner := range value {
			found = append(found, templatesIn(t, file, owner, inner)...)
		}
	}
	return found
}

func hasContainers(template map[string]any) bool {
	spec, _ := template["spec"].(map[string]any)
	return spec["containers"] != nil
}

func TestEveryPodIsConfined(t *testing.T) {
	var all []template
	var budgets []policyv1.PodDisruptionBudget
	var policies []networkingv1.NetworkPolicy
	documents(t, func(file string, document map[string]any) {
		all = append(all, templatesIn(t, file, "", document)...)
		switch document["kind"] {
		case "PodDisruptionBudget":
			budgets = append(budgets, decoded[policyv1.PodDisruptionBudget](t, document))
		case "NetworkPolicy":
			policies = append(policies, decoded[networkingv1.NetworkPolicy](t, document))
		}
	})
	if len(all) < 5 {
		t.Fatalf("only %d templates of Pods were found", len(all))
	}
	for _, one := range all {
		t.Run(filepath.Base(one.file)+" "+one.owner, func(t *testing.T) {
			for _, lacks := range slices.Concat(podLacks(one), containersLack(one.Spec.Containers)) {
				t.Errorf("%s: it lacks %s", one.file, lacks)
			}
			if one.replicas > 1 && !slices.ContainsFunc(budgets,
				func(b policyv1.PodDisruptionBudget) bool { return selects(t, b.Spec.Selector, one) }) {
				t.Errorf("%s: there is no PodDisruptionBudget for it", one.file)
			}
			ours := one.Labels["app.kubernetes.io/name"] == "machine-iac-operator"
			if ours && !slices.ContainsFunc(policies, func(p networkingv1.NetworkPolicy) bool {
				return selects(t, &p.Spec.PodSelector, one) && len(p.Spec.PolicyTypes) == 2
			}) {
				t.Errorf("%s: no NetworkPolicy denies it everything first", one.file)
			}
		})
	}
}

// podLacks returns the restrictions that a Pod lacks.
func podLacks(one template) []string {
	var lacks []string
	spec := one.Spec
	if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
		lacks = append(lacks, "enableServiceLinks: false")
	}
	security := spec.SecurityContext
	if security == nil || security.SeccompProfile == nil ||
		security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		lacks = append(lacks, "seccompProfile: {type: RuntimeDefault}")
	}
	if !slices.Contains(rootPods, one.owner) &&
		(security == nil || security.RunAsNonRoot == nil || !*security.RunAsNonRoot) {
		lacks = append(lacks, "runAsNonRoot: true")
	}
	if one.replicas > 1 && (spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil) {
		lacks = append(lacks, "podAntiAffinity")
	}
	return lacks
}

// containersLack returns the restrictions that containers lack.
func containersLack(containers []corev1.Container) []string {
	var lacks []string
	for _, c := range containers {
		security := c.SecurityContext
		if security == nil {
			security = &corev1.SecurityContext{}
		}
		if security.AllowPrivilegeEscalation == nil || *security.AllowPrivilegeEscalation {
			lacks = append(lacks, "allowPrivilegeEscalation: false of "+c.Name)
		}
		if security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem {
			lacks = append(lacks, "readOnlyRootFilesystem: true of "+c.Name)
		}
		if security.Capabilities == nil || !slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
			len(security.Capabilities.Add) > 0 {
			lacks = append(lacks, "capabilities: {drop: [ALL]} of "+c.Name)
		}
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().Cmp(*c.Resources.Limits.Memory()) > 0 {
			lacks = append(lacks, "a limit of memory above what is requested of "+c.Name)
		}
	}
	return lacks
}

// TestTheSidecarIsConfined tests a container that users add to their own Pods.
func TestTheSidecarIsConfined(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "install", "gardener", "sidecar", "container.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var container corev1.Container
	if err := utilyaml.Unmarshal(content, &container); err != nil {
		t.Fatal(err)
	}
	for _, lacks := range containersLack([]corev1.Container{container}) {
		t.Errorf("it lacks %s", lacks)
	}
}

func selects(t *testing.T, by *metav1.LabelSelector, one template) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		t.Fatal(err)
	}
	return !selector.Empty() && selector.Matches(labels.Set(one.Labels))
}

func decoded[T any](t *testing.T, document map[string]any) T {
	t.Helper()
	var made T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(document, &made); err != nil {
		t.Fatal(err)
	}
	return made
}
