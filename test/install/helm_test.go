package install_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

var chart = filepath.Join(root, "install", "helm")

// operatorKey names the operator's Deployment.
var operatorKey = client.ObjectKey{Namespace: namespace, Name: "machine-api-operator"}

func TestTheChartIsWhatKustomizeApplies(t *testing.T) {
	long.Test(t)
	if out, err := helm(t, "lint", "--strict", chart); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
	want := objectsOf(t, run(t, filepath.Join(root, "bin", "kubectl"), "kustomize",
		filepath.Join(root, "install", "kubernetes")))
	got := objectsOf(t, rendered(t))
	for key, one := range got {
		if !strings.HasPrefix(key, "CustomResourceDefinition ") {
			continue
		}
		annotations := one.GetAnnotations()
		if annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("an uninstallation would delete the %s, and its objects with it", key)
		}
		if delete(annotations, "helm.sh/resource-policy"); len(annotations) == 0 {
			annotations = nil
		}
		one.SetAnnotations(annotations)
	}
	if len(got) < 10 {
		t.Fatalf("the chart has %d objects; the test would hold nothing", len(got))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("without values, the chart differs from install/kubernetes (-kustomize +helm):\n%s", diff)
	}
}

func TestTheChartRefusesValues(t *testing.T) {
	long.Test(t)
	for value, at := range map[string]string{
		"image.pullPolicy=Sometimes":       "/image/pullPolicy",
		"image.digest=sha256:12":           "/image/digest",
		"image.repository=":                "/image/repository",
		"image.repository=example.org/o:v": "/image/repository",
		"image.repository=o@sha256:12":     "/image/repository",
		"config.replicas=0":                "/config/replicas",
		"config.work.claim=x":              "claim",
		"config.providers[0].image=op:v1":  "/config/providers/0/image",
		"config.resources.request.cpu=1":   "/config/resources",
		"image.Tag=v1":                     "Tag",
		"image.pullSecrets[0].nam=x":       "/image/pullSecrets/0",
		"config.webhooks=Off":              "/config/webhooks",
		"config.arguments[0]=max-runs=3":   "/config/arguments/0",
		"config.plattform=AWS":             "plattform",
		"config.moduleKeys=Module keys":    "/config/moduleKeys",
		"config.stateKeys=State keys":      "/config/stateKeys",
		"config.nodeSelector.disk=true":    "/config/nodeSelector/disk",
		"extraArgs[0]=leader-elect":        "/extraArgs/0",
		"crds.install=yes":                 "/crds/install",
		"resources.request.cpu=1":          "/resources",
		"trustedCA=/etc/ssl/ca.pem":        "/trustedCA",
		"tolerations.key=x":                "/tolerations",
		"affinity.podAffinty.x=y":          "/affinity",
		"replicas=2":                       "replicas",
		"nodeSelector.disk=true":           "/nodeSelector/disk",
		"controllers.image=example.org/ x": "/controllers/image",
	} {
		out, err := helm(t, "template", "machine-iac", chart, "--namespace", namespace, "--set", value)
		if path := strings.ReplaceAll(strings.TrimPrefix(at, "/"), "/", "."); err == nil ||
			!strings.Contains(out, at) && !strings.Contains(out, path) {
			t.Errorf("%s: want an error that names %s: %v\n%.600s", value, at, err, out)
		}
	}
	if out, err := helm(t, "template", "machine-iac", chart, "--kube-version", "1.28.9"); err == nil ||
		!strings.Contains(out, "chart requires kubeVersion") {
		t.Errorf("it can be installed on Kubernetes 1.28: %v\n%.600s", err, out)
	}
	if out, err := helm(t, "template", "machine-iac", chart, "--namespace", "default"); err == nil ||
		!strings.Contains(out, "--create-namespace") {
		t.Errorf("it can be installed into default: %v\n%.600s", err, out)
	}
}

const values = `
image: {repository: registry.example/op, tag: v1.2.3, pullPolicy: Always, pullSecrets: [{name: mirror}]}
controllers: {image: "registry.example/op@sha256:2"}
config: {platform: OpenStack, webhooks: Disabled, arguments: [--max-concurrent-runs=3, '--controllers=*,-drain'], moduleKeys: module-keys, stateKeys: state-keys,
  nodeSelector: {infra: ""}, tolerations: [{key: infra, operator: Exists}], affinity: {podAntiAffinity: {}}, priorityClassName: high, replicas: 3,
  resources: {limits: {memory: 8Gi}}, env: [{name: A, value: b}], serviceAccountAnnotations: {example.org/role: worker}, proxy: {httpsProxy: "http://proxy:3128"},
  work: {size: 4Gi, medium: Disk}, providers: [{image: "op@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a", mount: true}]}
trustedCA: |
  -----BEGIN CERTIFICATE-----
  MIIB
  -----END CERTIFICATE-----
extraArgs: [--zap-log-level=debug]
resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}
priorityClassName: high
nodeSelector: {disk: "ssd"}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
podAnnotations: {example.org/a: "1"}
podLabels: {example.org/l: "2"}
`

func TestTheChartTakesValues(t *testing.T) {
	long.Test(t)
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	objects := objectsOf(t, rendered(t, "--values", file, "--set", "crds.install=false", "--namespace", "machines"))
	for key, one := range objects {
		if strings.HasPrefix(key, "CustomResourceDefinition ") {
			t.Errorf("there is the %s", key)
		}
		if in := one.GetNamespace(); in == namespace {
			t.Errorf("the %s is in %s", key, in)
		}
	}
	made := &appsv1.Deployment{}
	convert(t, objects["Deployment machines/machine-api-operator"], made)
	pod := made.Spec.Template
	main := pod.Spec.Containers[0]
	for what, is := range map[string]bool{
		"the image":    main.Image == "registry.example/op:v1.2.3" && main.ImagePullPolicy == corev1.PullAlways,
		"pull secrets": len(pod.Spec.ImagePullSecrets) == 1 && pod.Spec.ImagePullSecrets[0].Name == "mirror",
		"arguments":    cmp.Equal(main.Command, []string{"/usr/bin/machine-api-operator", "--zap-log-level=debug"}),
		"resources": main.Resources.Limits.Memory().String() == "1Gi" &&
			main.Resources.Requests.Cpu().String() == "1",
		"the priority": pod.Spec.PriorityClassName == "high",
		"the nodes": pod.Spec.NodeSelector["disk"] == "ssd" && len(pod.Spec.Tolerations) == 1 &&
			pod.Spec.Affinity.NodeAffinity != nil,
		"the annotations": pod.Annotations["example.org/a"] == "1",
		"the labels":      pod.Labels["example.org/l"] == "2" && pod.Labels["k8s-app"] == "machine-api-operator",
	} {
		if !is {
			t.Errorf("%s are not those of the values: %+v", what, pod)
		}
	}
	for name, want := range map[string]map[string]string{
		"machine-api-operator-config": {"platform": "OpenStack", "webhooks": "Disabled", "arguments": "--max-concurrent-runs=3\n--controllers=*,-drain\n", "moduleKeys": "module-keys", "stateKeys": "state-keys",
			"nodeSelector": `{"infra":""}`, "tolerations": `[{"key":"infra","operator":"Exists"}]`, "affinity": `{"podAntiAffinity":{}}`, "priorityClassName": `"high"`,
			"replicas": "3", "resources": `{"limits":{"memory":"8Gi"}}`, "env": `[{"name":"A","value":"b"}]`, "serviceAccountAnnotations": `{"example.org/role":"worker"}`,
			"proxy": `{"httpsProxy":"http://proxy:3128"}`, "work": `{"medium":"Disk","size":"4Gi"}`, "providers": `[{"image":"op@sha256:` + strings.Repeat("0a", 32) + `","mount":true}]`},
		"machine-api-operator-images": {"images.json": `{"machineAPIOperator":"registry.example/op@sha256:2"}`},
		"mao-trusted-ca": {
			"ca-bundle.crt": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
		},
	} {
		got := &corev1.ConfigMap{}
		convert(t, objects["ConfigMap machines/"+name], got)
		for key, value := range want {
			if strings.TrimSpace(got.Data[key]) != strings.TrimSpace(value) {
				t.Errorf("%s of %s is %q, want %q", key, name, got.Data[key], value)
			}
		}
	}
	digest := "sha256:" + strings.Repeat("0a", 32)
	objects = objectsOf(t, rendered(t, "--set", "image.digest="+digest+",image.tag=v1,image.repository=registry.example:5000/op"))
	convert(t, objects["Deployment "+namespace+"/machine-api-operator"], made)
	if got := made.Spec.Template.Spec.Containers[0].Image; got != "registry.example:5000/op@"+digest {
		t.Errorf("the image is %s, want the digest's", got)
	}
}

func TestTheChartIsInstalledUpgradedAndUninstalled(t *testing.T) {
	long.Test(t)
	c := start(t, withoutCRDs)
	release := func(arguments ...string) string {
		t.Helper()
		out, err := helm(t, append(arguments, "--namespace", namespace, "--kubeconfig", c.kubeconfig)...)
		if err != nil {
			t.Fatalf("helm %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
		return out
	}
	release("install", "machine-iac", chart, "--create-namespace")
	made := &appsv1.Deployment{}
	if err := c.plane.Client.Get(t.Context(), operatorKey, made); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "wait", "--for=condition=Established", "--timeout=30s", "crd/machines.machine.openshift.io")
	c.kubectl(t, "-n", namespace, "create",
		"-f", filepath.Join(root, "modules", "kubemark", "examples", "machineset.yaml"))

	release("upgrade", "machine-iac", changedChart(t), "--set", "image.tag=v2", "--reuse-values")
	if err := c.plane.Client.Get(t.Context(), operatorKey, made); err != nil {
		t.Fatal(err)
	}
	if got := made.Spec.Template.Spec.Containers[0].Image; got != "machine-iac-operator:v2" {
		t.Errorf("after the upgrade the image is %s", got)
	}
	if got := c.crd(t).GetAnnotations()["example.org/changed"]; got != "yes" {
		t.Error("the upgrade did not change the CRD")
	}

	before := c.crd(t).GetUID()
	release("uninstall", "machine-iac")
	if err := c.plane.Client.Get(t.Context(), operatorKey, made); !apierrors.IsNotFound(err) {
		t.Errorf("after the uninstallation there is the operator: %v", err)
	}
	if c.crd(t).GetUID() != before || c.crd(t).GetDeletionTimestamp() != nil {
		t.Error("the uninstallation has deleted the CRD")
	}
	c.kubectl(t, "-n", namespace, "get", "machinesets/hollow")
	release("install", "machine-iac", chart)
	if err := c.plane.Client.Get(t.Context(), operatorKey, made); err != nil {
		t.Errorf("it cannot be installed again: %v", err)
	}
}

func TestTheChartTakesOverWhatKubectlHasApplied(t *testing.T) {
	long.Test(t)
	c := start(t, withoutCRDs)
	c.kubectl(t, "create", "-f", filepath.Join(root, "install", "kubernetes", "namespace.yaml"))
	c.kubectl(t, "apply", "-k", filepath.Join(root, "install", "kubernetes"))
	before := c.crd(t).GetUID()
	install := []string{"install", "machine-iac", chart, "--namespace", namespace, "--kubeconfig", c.kubeconfig}
	if out, err := helm(t, install...); err == nil {
		t.Errorf("it is taken over without a flag:\n%s", out)
	}
	if out, err := helm(t, append(install, "--take-ownership", "--set", "image.tag=v2")...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made := &appsv1.Deployment{}
	if err := c.plane.Client.Get(t.Context(), operatorKey, made); err != nil {
		t.Fatal(err)
	}
	if got := made.Spec.Template.Spec.Containers[0].Image; got != "machine-iac-operator:v2" || made.Labels["app.kubernetes.io/managed-by"] != "Helm" {
		t.Errorf("the image is %s, labels %v", got, made.Labels)
	}
	if c.crd(t).GetUID() != before {
		t.Error("the CRD was made anew")
	}
}

// changedChart returns a copy of the chart with a later version and a changed annotation of the Machines' CRD.
func changedChart(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "chart")
	if err := os.CopyFS(folder, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"templates/crds/machines.yaml": {
			"metadata:\n  annotations:\n", "metadata:\n  annotations:\n    example.org/changed: \"yes\"\n",
		},
		"Chart.yaml": {"version: 0.0.0", "version: 0.0.1"},
	} {
		file := filepath.Join(folder, name)
		content, err := os.ReadFile(file)
		if err != nil || bytes.Count(content, []byte(change[0])) != 1 {
			t.Fatalf("%s does not have %q once: %v", name, change[0], err)
		}
		if err := os.WriteFile(file, bytes.Replace(content, []byte(change[0]), []byte(change[1]), 1), 0o600); err !=
			nil {
			t.Fatal(err)
		}
	}
	return folder
}

// crd returns the CRD of Machines.
func (c *cluster) crd(t *testing.T) *metav1.PartialObjectMetadata {
	t.Helper()
	found := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
	}
	if err := c.plane.Client.Get(t.Context(),
		client.ObjectKey{Name: "machines.machine.openshift.io"}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// helm runs Helm in isolated folders, and returns its output.
func helm(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	if arguments[0] == "template" && !slices.Contains(arguments, "--kube-version") {
		arguments = append(arguments, "--kube-version", "1.29.0") // the first that the chart takes
	}
	command := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "helm"), arguments...)
	home := t.TempDir()
	command.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home,
		"HELM_DATA_HOME=" + home}
	out, err := command.CombinedOutput()
	return string(out), err
}

// rendered returns the rendered chart.
func rendered(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := helm(t, append([]string{"template", "machine-iac", chart, "--namespace", namespace}, arguments...)...)
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, out)
	}
	return out
}

func convert(t *testing.T, from *unstructured.Unstructured, into any) {
	t.Helper()
	if from == nil {
		t.Fatalf("there is no %T of that name", into)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
		t.Fatal(err)
	}
}

// run returns a program's output.
func run(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, arguments...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", program, strings.Join(arguments, " "), err)
	}
	return string(out)
}

// objectsOf parses objects by kind, namespace and name.
func objectsOf(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	objects := map[string]*unstructured.Unstructured{}
	for documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		one := &unstructured.Unstructured{}
		if err := documents.Decode(&one.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		if len(one.Object) == 0 {
			continue
		}
		key := one.GetKind() + " " + one.GetNamespace() + "/" + one.GetName()
		if objects[key] != nil {
			t.Errorf("there are two of %s", key)
		}
		objects[key] = one
	}
}
