package operator

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if plane, err = controlplane.Start(controlplane.Default); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "; run 'make tools'\n")
			return 1
		}
		defer func() { _ = plane.Stop() }()
		return m.Run()
	}())
}

// kept is an object that is applied as the operator does.
type kept struct {
	*testing.T
	manifest  string
	namespace string
}

func keep(t *testing.T, manifest string) *kept {
	t.Helper()
	namespace, err := plane.Namespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{T: t, manifest: manifest, namespace: namespace}
	k.applied(nil)
	return k
}

// object returns what the manifest says.
func (k *kept) object() *unstructured.Unstructured {
	k.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(k.manifest), &object.Object); err != nil {
		k.Fatal(err)
	}
	if namespaced, err := plane.Client.IsObjectNamespaced(object); err != nil {
		k.Fatal(err)
	} else if namespaced {
		object.SetNamespace(k.namespace)
	}
	return object
}

// live returns the object as it is.
func (k *kept) live() *unstructured.Unstructured {
	k.Helper()
	object := k.object()
	if err := plane.Client.Get(k.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		k.Fatal(err)
	}
	return object
}

func (k *kept) applied(before *unstructured.Unstructured) *unstructured.Unstructured {
	k.Helper()
	live, err := applier{client: plane.Client}.apply(k.Context(), k.object(), before)
	if err != nil {
		k.Fatal(err)
	}
	return live
}

// edited lets somebody change the object, applies it again, and returns it before and after that.
func edited[T client.Object](k *kept, into T, manager string, change func(T)) (before *unstructured.Unstructured, after T) {
	k.Helper()
	k.read(into)
	change(into)
	if err := plane.Client.Update(k.Context(), into, client.FieldOwner(manager)); err != nil {
		k.Fatal(err)
	}
	before = k.live()
	k.applied(before)
	k.read(into)
	return before, into
}

// read reads the object into its type.
func (k *kept) read(into client.Object) {
	k.Helper()
	if err := plane.Client.Get(k.Context(), client.ObjectKeyFromObject(k.object()), into); err != nil {
		k.Fatal(err)
	}
}

const (
	deploymentManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: controllers, labels: {app: x}}
spec:
  replicas: 2
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec: {containers: [{name: main, image: example.org/one, args: [--a, --b]}]}
`
	roleManifest = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: controllers}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
`
	configMapManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: dashboard}
data: {ours: "1"}
`
	serviceManifest = `
apiVersion: v1
kind: Service
metadata: {name: controllers}
spec: {selector: {app: x}, ports: [{name: metrics, port: 8443}]}
`
	bindingManifest = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: controllers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: controllers}
subjects: [{kind: ServiceAccount, name: controllers, namespace: x}]
`
	webhookManifest = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: applier-test}
webhooks:
  - name: one.example.org
    clientConfig: {service: {namespace: ns, name: svc, path: /one}}
    rules: [{apiGroups: [example.org], apiVersions: [v1], resources: [ones], operations: [CREATE]}]
    failurePolicy: Ignore
    sideEffects: None
    admissionReviewVersions: [v1]
  - name: two.example.org
    clientConfig: {service: {namespace: ns, name: svc, path: /two}}
    rules: [{apiGroups: [example.org], apiVersions: [v1], resources: [twos], operations: [CREATE]}]
    failurePolicy: Ignore
    sideEffects: None
    admissionReviewVersions: [v1]
`
)

func TestWhatOthersAddToADefinitionIsRemoved(t *testing.T) {
	k := keep(t, deploymentManifest)
	_, after := edited(k, &appsv1.Deployment{}, "kubectl-edit", func(d *appsv1.Deployment) {
		pod := &d.Spec.Template.Spec
		pod.Containers[0].Image = "example.org/other"
		pod.Containers[0].Args = append(pod.Containers[0].Args, "--c")
		pod.Containers[0].Env = []corev1.EnvVar{{Name: "ADDED", Value: "x"}}
		pod.Containers = append(pod.Containers, corev1.Container{Name: "added", Image: "x"})
		pod.NodeSelector = map[string]string{"added": "x"}
		d.Spec.Template.Annotations = map[string]string{"added": "x"}
		d.Spec.MinReadySeconds = 7
	})
	pod := after.Spec.Template.Spec
	if main := pod.Containers[0]; len(pod.Containers) != 1 || main.Image != "example.org/one" || len(main.Env) != 0 || !slices.Equal(main.Args, []string{"--a", "--b"}) {
		t.Errorf("the containers are %+v", pod.Containers)
	}
	if len(pod.NodeSelector) != 0 || len(after.Spec.Template.Annotations) != 0 || after.Spec.MinReadySeconds != 0 {
		t.Errorf("selector %v, annotations %v, minReadySeconds %d stay", pod.NodeSelector, after.Spec.Template.Annotations, after.Spec.MinReadySeconds)
	}

	_, role := edited(keep(t, roleManifest), &rbacv1.Role{}, "kubectl-edit", func(r *rbacv1.Role) {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"delete"}})
	})
	if len(role.Rules) != 1 {
		t.Errorf("the rules are %+v", role.Rules)
	}
	_, config := edited(keep(t, configMapManifest), &corev1.ConfigMap{}, "kubectl-edit", func(c *corev1.ConfigMap) { c.Data["theirs"] = "2" })
	if len(config.Data) != 1 || config.Data["ours"] != "1" {
		t.Errorf("the data is %v", config.Data)
	}
}

func TestMetadataOfOthersIsKept(t *testing.T) {
	_, after := edited(keep(t, deploymentManifest), &appsv1.Deployment{}, "theirs", func(d *appsv1.Deployment) {
		d.Labels["theirs"], d.Labels["app"] = "1", "y"
		d.Annotations = map[string]string{"theirs": "2"}
		d.Finalizers = []string{"example.org/theirs"}
	})
	if after.Labels["theirs"] != "1" || after.Annotations["theirs"] != "2" || len(after.Finalizers) != 1 {
		t.Errorf("labels %v, annotations %v, finalizers %v", after.Labels, after.Annotations, after.Finalizers)
	}
	if after.Labels["app"] != "x" {
		t.Error("a label of the manifest is not set again")
	}
}

func TestWhatTheControlPlaneAssignsIsKept(t *testing.T) {
	before, after := edited(keep(t, serviceManifest), &corev1.Service{}, "kubectl-edit", func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "added", Port: 1})
		s.Spec.Selector["added"] = "x"
	})
	assigned, _, _ := unstructured.NestedString(before.Object, "spec", "clusterIP")
	if assigned == "" || after.Spec.ClusterIP != assigned || len(after.Spec.Ports) != 1 || len(after.Spec.Selector) != 1 {
		t.Errorf("the Service, which had the address %s, has %+v", assigned, after.Spec)
	}
}

func TestTheCAOfWebhooksIsKept(t *testing.T) {
	k := keep(t, webhookManifest)
	t.Cleanup(func() { _ = plane.Client.Delete(t.Context(), k.object()) })
	inject := func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.CABundle = plane.Config.CAData
		}
	}
	edited(k, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "service-ca", inject)
	// Whoever edits a webhook has a copy of the CA in what they send.
	_, after := edited(k, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "kubectl-edit", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
		fail := admissionregistrationv1.Fail
		c.Webhooks[0].FailurePolicy = &fail
		c.Webhooks[0].ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"added": "x"}}
		added := c.Webhooks[1]
		added.Name = "three.example.org"
		c.Webhooks = append(c.Webhooks, added)
	})
	if len(after.Webhooks) != 2 || *after.Webhooks[0].FailurePolicy != admissionregistrationv1.Ignore || len(after.Webhooks[0].ObjectSelector.MatchLabels) != 0 {
		t.Errorf("the webhooks are %+v", after.Webhooks)
	}
	for _, one := range after.Webhooks {
		if !bytes.Equal(one.ClientConfig.CABundle, plane.Config.CAData) {
			t.Errorf("the CA of %s is gone", one.Name)
		}
	}
}

func TestReplicas(t *testing.T) {
	scale := func(k *kept, to int32) int32 {
		t.Helper()
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "controllers"}}
		body := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: to}}
		if err := plane.Client.SubResource("scale").Update(t.Context(), deployment, client.WithSubResourceBody(body), client.FieldOwner("autoscaler")); err != nil {
			t.Fatal(err)
		}
		k.applied(k.live())
		k.read(deployment)
		return *deployment.Spec.Replicas
	}
	k := keep(t, deploymentManifest)
	if got := scale(k, 5); got != 5 {
		t.Errorf("%d replicas, want the 5 of the autoscaler", got)
	}
	if got := scale(k, 0); got != 2 {
		t.Errorf("%d replicas, want the 2 of the manifest instead of none", got)
	}
	_, after := edited(k, &appsv1.Deployment{}, "kubectl-edit", func(d *appsv1.Deployment) { *d.Spec.Replicas = 4 })
	if *after.Spec.Replicas != 2 {
		t.Errorf("%d replicas, want the 2 of the manifest instead of those of an edit", *after.Spec.Replicas)
	}
}

func TestFieldsThatOthersHaveAppliedAreTakenOver(t *testing.T) {
	k := keep(t, deploymentManifest)
	theirs := k.object()
	containers := []any{map[string]any{"name": "main", "image": "example.org/theirs", "workingDir": "/theirs"}}
	if err := unstructured.SetNestedSlice(theirs.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	theirs.SetLabels(map[string]string{"theirs": "1"})
	if err := plane.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner("theirs"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	after := &appsv1.Deployment{}
	k.applied(k.live())
	k.read(after)
	if main := after.Spec.Template.Spec.Containers[0]; main.Image != "example.org/one" || main.WorkingDir != "" || after.Labels["theirs"] != "1" {
		t.Errorf("the container is %+v, the labels are %v", main, after.Labels)
	}
}

func TestAnObjectThatSomebodyElseHasMadeIsTakenOver(t *testing.T) {
	namespace, err := plane.Namespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{T: t, manifest: roleManifest, namespace: namespace}
	made := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "controllers"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete"}}, {APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
	}}
	if err := plane.Client.Create(t.Context(), made, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	after := &rbacv1.Role{}
	k.applied(k.live())
	k.read(after)
	if after.UID != made.UID || len(after.Rules) != 1 || !slices.Equal(after.Rules[0].Resources, []string{"secrets"}) {
		t.Errorf("the rules are %+v", after.Rules)
	}
}

func TestAFieldThatCannotBeChangedReplacesTheObject(t *testing.T) {
	for name, test := range map[string]struct {
		manifest string
		path     []string
		value    any
	}{
		"the selector of a Deployment": {deploymentManifest, []string{"spec"}, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "y"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "y"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "x"}}},
			},
		}},
		"the role of a binding": {bindingManifest, []string{"roleRef", "name"}, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace, err := plane.Namespace(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			k := &kept{T: t, manifest: test.manifest, namespace: namespace}
			other := k.object()
			if err := unstructured.SetNestedField(other.Object, test.value, test.path...); err != nil {
				t.Fatal(err)
			}
			if err := plane.Client.Create(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			after := k.applied(k.live())
			want, _, _ := unstructured.NestedFieldNoCopy(k.object().Object, test.path[0])
			got, _, _ := unstructured.NestedFieldNoCopy(after.Object, test.path[0])
			if after.GetUID() == other.GetUID() || got == nil || want == nil {
				t.Fatalf("%s was not made anew: %v", nameOf(other), got)
			}
			if again := k.applied(k.live()); again.GetResourceVersion() != after.GetResourceVersion() {
				t.Error("it is applied again")
			}
		})
	}
}

func TestAStaleViewIsAConflictAndChangesNothing(t *testing.T) {
	k := keep(t, configMapManifest)
	config := &corev1.ConfigMap{}
	k.read(config)
	config.Data["theirs"] = "2"
	if err := plane.Client.Update(t.Context(), config, client.FieldOwner("theirs")); err != nil {
		t.Fatal(err)
	}
	stale := k.live()
	if err := plane.Client.Patch(t.Context(), config, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"newer":"1"}}}`))); err != nil {
		t.Fatal(err)
	}
	_, err := applier{client: plane.Client}.apply(t.Context(), k.object(), stale)
	if !apierrors.IsConflict(err) {
		t.Fatalf("the error is %v, want a conflict", err)
	}
	if now := k.live(); now.GetResourceVersion() != config.ResourceVersion {
		t.Error("the object was written")
	}
}

func TestNothingIsWrittenWhereNothingDiffers(t *testing.T) {
	for name, manifest := range map[string]string{"Deployment": deploymentManifest, "Role": roleManifest, "Service": serviceManifest, "RoleBinding": bindingManifest, "ConfigMap": configMapManifest} {
		k := keep(t, manifest)
		before := k.live()
		time.Sleep(1100 * time.Millisecond) // the times of managed fields have seconds
		if after := k.applied(before); after.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("%s was written", name)
		}
	}
}
