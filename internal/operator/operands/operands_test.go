package operands_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/install"
	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

func inputs(change ...func(*operands.Inputs)) operands.Inputs {
	in := operands.Inputs{Namespace: operands.Namespace, Version: "1.2.3", Image: "example.org/image@sha256:1"}
	for _, one := range change {
		one(&in)
	}
	return in
}

func rendered(t *testing.T, in operands.Inputs) []*unstructured.Unstructured {
	t.Helper()
	objects, err := operands.Render(install.FS, in)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func deployment(t *testing.T, in operands.Inputs) *appsv1.Deployment {
	t.Helper()
	for _, one := range rendered(t, in) {
		if one.GetKind() != "Deployment" {
			continue
		}
		made := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(one.Object, made, true); err != nil {
			t.Fatal(err)
		}
		return made
	}
	t.Fatal("there is no Deployment")
	return nil
}

func TestEveryObjectIsMarkedAsOwned(t *testing.T) {
	objects := rendered(t, inputs())
	if len(objects) < 15 {
		t.Fatalf("%d objects", len(objects))
	}
	for _, one := range objects {
		if _, owned := one.GetAnnotations()[operands.OwnedAnnotation]; !owned || one.GetLabels()[operands.ManagedByLabel] != operands.ManagedBy {
			t.Errorf("%s %s is not marked", one.GetKind(), one.GetName())
		}
	}
	if first, last := objects[0].GetKind(), objects[len(objects)-1].GetKind(); first != "ServiceAccount" || !strings.HasSuffix(last, "WebhookConfiguration") {
		t.Errorf("applied from %s to %s, want what others need first", first, last)
	}
}

func TestTheNamespaceIsTheOperators(t *testing.T) {
	for _, one := range rendered(t, inputs(func(in *operands.Inputs) { in.Namespace = "elsewhere" })) {
		text, err := yaml.Marshal(one.Object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.ReplaceAll(string(text), "operator.openshift.io/dep-"+operands.Namespace, ""), operands.Namespace) {
			t.Errorf("%s %s names %s:\n%s", one.GetKind(), one.GetName(), operands.Namespace, text)
		}
	}
}

func TestTheControllersReachWhatIsNamed(t *testing.T) {
	policies := func(in operands.Inputs) map[string]networkingv1.NetworkPolicySpec {
		found := map[string]networkingv1.NetworkPolicySpec{}
		for _, one := range rendered(t, in) {
			if one.GetKind() != "NetworkPolicy" {
				continue
			}
			made := &networkingv1.NetworkPolicy{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(one.Object, made, true); err != nil {
				t.Fatal(err)
			}
			found[made.Name] = made.Spec
		}
		return found
	}
	free := policies(inputs())
	if got := free["machine-iac-controllers-egress"].Egress; len(got) != 1 || len(got[0].To)+len(got[0].Ports) != 0 {
		t.Errorf("without the setting they reach %v", got)
	}
	bound := policies(inputs(func(in *operands.Inputs) {
		in.Egress = []operands.Destination{{Network: netip.MustParsePrefix("192.0.2.0/24"), Ports: []int32{443, 6443}}, {Network: netip.MustParsePrefix("2001:db8::/32")}}
	}))
	rules := bound["machine-iac-controllers-egress"].Egress
	if len(rules) != 3 || len(rules[0].To) != 0 || len(rules[0].Ports) != 4 {
		t.Fatalf("they reach %v, want name servers and two networks", rules)
	}
	if got := rules[1]; got.To[0].IPBlock.CIDR != "192.0.2.0/24" || len(got.Ports) != 2 || got.Ports[1].Port.IntVal != 6443 || *got.Ports[1].Protocol != corev1.ProtocolTCP {
		t.Errorf("the first is %v", got)
	}
	if got := rules[2]; got.To[0].IPBlock.CIDR != "2001:db8::/32" || len(got.Ports) != 0 {
		t.Errorf("the second is %v", got)
	}
	delete(free, "machine-iac-controllers-egress")
	delete(bound, "machine-iac-controllers-egress")
	if diff := cmp.Diff(free, bound); diff != "" {
		t.Errorf("the other policies changed (-free +bound):\n%s", diff)
	}
}

func TestDestinationsThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"203.0.113.7": "203.0.113.7/32", "203.0.113.7/24": "write 203.0.113.0/24", "infra.example.com/24": "is no network", "203.0.113.0/24 https": `invalid port "https"`,
		"203.0.113.0/24 0": "between 1 and 65535", "203.0.113.0/24 70000": "between 1 and 65535",
	} {
		if _, err := operands.ParseDestination(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"203.0.113.0/24", "203.0.113.0/24 443", " 2001:db8::/32 443, 6443 "} {
		if _, err := operands.ParseDestination(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheDeploymentFollowsTheInputs(t *testing.T) {
	plain := deployment(t, inputs())
	if got := plain.Spec.Template.Spec.Containers[0]; got.Image != "example.org/image@sha256:1" || *plain.Spec.Replicas != 2 || plain.Annotations[operands.VersionAnnotation] != "1.2.3" {
		t.Errorf("image %s, %d replicas, annotations %v", got.Image, *plain.Spec.Replicas, plain.Annotations)
	}
	full := deployment(t, inputs(func(in *operands.Inputs) {
		in.SingleReplica, in.ServiceCA, in.WithoutHealthChecks = true, true, true
		in.Proxy = operands.Proxy{HTTPS: "http://proxy:3128", No: ".svc"}
		in.TrustedCA = "abc"
		in.Placement = operands.Placement{NodeSelector: map[string]string{"infra": ""}, Tolerations: []corev1.Toleration{{Key: "infra"}},
			Annotations: map[string]string{"example.org/a": "b"}}
		in.TLS = operands.TLS{MinVersion: "VersionTLS12", CipherSuites: []string{"A", "B"}}
		in.Arguments = []string{"--max-concurrent-runs=3"}
	}))
	main := full.Spec.Template.Spec.Containers[0]
	if *full.Spec.Replicas != 1 {
		t.Errorf("%d replicas on a control plane of one node", *full.Spec.Replicas)
	}
	for _, flag := range []string{
		"--controllers=*,-machinehealthcheck", "--webhook-cert-dir=/etc/machine-api-operator/tls",
		"--metrics-cert-dir=/etc/machine-api-controllers/tls", "--metrics-controller-ports", "--tls-min-version=VersionTLS12", "--tls-cipher-suites=A,B", "--max-concurrent-runs=3",
	} {
		if !slices.Contains(main.Args, flag) {
			t.Errorf("the flags %v lack %s", main.Args, flag)
		}
	}
	variables := map[string]string{}
	for _, one := range main.Env {
		variables[one.Name] = one.Value
	}
	if _, set := variables["HTTP_PROXY"]; set || variables["HTTPS_PROXY"] != "http://proxy:3128" || variables["NO_PROXY"] != ".svc" || variables["SSL_CERT_FILE"] == "" {
		t.Errorf("variables %v", variables)
	}
	if pod := full.Spec.Template; len(pod.Spec.NodeSelector) != 1 || len(pod.Spec.Tolerations) != 1 || pod.Annotations["example.org/a"] != "b" {
		t.Errorf("the Pods are placed by %v, %v, %v", pod.Spec.NodeSelector, pod.Spec.Tolerations, pod.Annotations)
	}
	for _, volume := range []string{"webhook-cert", "metrics-cert", "trusted-ca"} {
		if !slices.ContainsFunc(main.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume && m.ReadOnly }) {
			t.Errorf("volume %s is not mounted", volume)
		}
	}
	if hash := "operator.openshift.io/dep-openshift-machine-api.mao-trusted-ca.configmap"; full.Annotations[hash] != "abc" || full.Spec.Template.Annotations[hash] != "abc" {
		t.Error("a change of the trusted CA would not roll the Pods out")
	}
}

func TestTheDeploymentFollowsTheSettings(t *testing.T) {
	image, mounted := "registry.example/providers@sha256:2", "registry.example/providers@sha256:3"
	tuned := inputs(func(in *operands.Inputs) {
		in.SingleReplica, in.TrustedCA = true, "abc"
		in.Arguments = []string{"--provider-mirror=/own"}
		in.Placement.PriorityClassName, in.Placement.Affinity = "high", &corev1.Affinity{}
		in.Tuning = operands.Tuning{
			Replicas: ptr.To[int32](3), Resources: &corev1.ResourceRequirements{}, AccountAnnotations: map[string]string{"example.org/role": "worker"},
			Env: []corev1.EnvVar{{Name: "SSL_CERT_FILE", Value: "/mine"}, {Name: "A", Value: "b"}}, Providers: []operands.ProviderImage{{Image: image}, {Image: mounted, Mount: true}},
			Work: operands.Work{Size: ptr.To(resource.MustParse("4Gi")), Medium: "Disk"},
		}
	})
	made := deployment(t, tuned)
	pod := made.Spec.Template.Spec
	main := pod.Containers[0]
	if *made.Spec.Replicas != 3 || pod.PriorityClassName != "high" || len(main.Resources.Limits)+len(main.Resources.Requests) != 0 || pod.Affinity.PodAntiAffinity != nil {
		t.Errorf("%d replicas, priority %s, resources %v, affinity %v", *made.Spec.Replicas, pod.PriorityClassName, main.Resources, pod.Affinity)
	}
	variables := map[string][]string{}
	for _, one := range main.Env {
		variables[one.Name] = append(variables[one.Name], one.Value)
	}
	if diff := cmp.Diff([]string{"/mine", "b"}, append(variables["SSL_CERT_FILE"], variables["A"]...)); diff != "" || len(variables["POD_IP"]) != 1 {
		t.Errorf("variables %v (-want +got):\n%s", variables, diff)
	}
	if got := main.Args[len(main.Args)-2:]; !slices.Equal(got, []string{"--provider-mirror=/var/lib/machine-iac-providers/mirror", "--provider-mirror=/own"}) {
		t.Errorf("the last flags are %v, want the administrator's own mirror last", got)
	}
	var steps []string
	for _, step := range pod.InitContainers {
		steps = append(steps, step.Image+" "+strings.Join(step.Command, " "))
		if !*step.SecurityContext.ReadOnlyRootFilesystem || step.VolumeMounts[0].ReadOnly {
			t.Errorf("%s may write %v, security context %v", step.Name, step.VolumeMounts, step.SecurityContext)
		}
	}
	if diff := cmp.Diff([]string{
		"example.org/image@sha256:1 /usr/bin/machine-controllers add-providers --own /usr/share/machine-iac/mirror /var/lib/machine-iac-images/1/usr/share/machine-iac/mirror /var/lib/machine-iac-providers",
		image + " /var/lib/machine-iac-providers/machine-controllers add-providers /usr/share/machine-iac/mirror /var/lib/machine-iac-providers",
	}, steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, at := range map[string]string{"providers": "/var/lib/machine-iac-providers", "providers-1": "/var/lib/machine-iac-images/1"} {
		if !slices.ContainsFunc(main.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name && m.MountPath == at && m.ReadOnly }) {
			t.Errorf("the manager does not have the volume %s", name)
		}
	}
	if last := pod.Volumes[len(pod.Volumes)-1]; last.Image == nil || last.Image.Reference != mounted {
		t.Errorf("volume %+v is not image %s", last, mounted)
	}
	for _, one := range rendered(t, tuned) {
		if role := one.GetAnnotations()["example.org/role"]; (role == "worker") != (one.GetKind() == "ServiceAccount" && one.GetName() == operands.Deployment) {
			t.Errorf("%s %s has the role %q", one.GetKind(), one.GetName(), role)
		}
	}
	if plain := deployment(t, inputs()); len(plain.Spec.Template.Spec.InitContainers) != 0 || plain.Spec.Template.Spec.Containers[0].TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		t.Errorf("without settings: %v", plain.Spec.Template.Spec)
	}
}

func TestTheVolumeOfTheWorkFolder(t *testing.T) {
	const fromManifest = "512Mi"
	size := ptr.To(resource.MustParse("4Gi"))
	for name, test := range map[string]struct {
		work   operands.Work
		medium corev1.StorageMedium
		size   string
	}{
		"the manifest's": {operands.Work{}, corev1.StorageMediumMemory, fromManifest},
		"larger":         {operands.Work{Size: size}, corev1.StorageMediumMemory, "4Gi"},
		"on disk":        {operands.Work{Medium: "Disk", Size: size}, "", "4Gi"},
		"claimed":        {operands.Work{StorageClassName: ptr.To("fast"), Size: size}, "", ""},
	} {
		pod := deployment(t, inputs(func(in *operands.Inputs) { in.Tuning.Work = test.work })).Spec.Template.Spec
		for _, volume := range pod.Volumes {
			switch {
			case volume.Name != "work":
			case test.size == "":
				claim := volume.Ephemeral.VolumeClaimTemplate.Spec
				if volume.EmptyDir != nil || *claim.StorageClassName != "fast" || claim.Resources.Requests.Storage().String() != "4Gi" {
					t.Errorf("%s: %+v", name, volume)
				}
			case volume.EmptyDir.Medium != test.medium || volume.EmptyDir.SizeLimit.String() != test.size:
				t.Errorf("%s: %+v", name, volume.EmptyDir)
			}
		}
	}
}

func TestKeysAreMountedWhereTheyAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		folder, flag string
		named        func(*operands.Inputs)
	}{
		"module-keys": {"/etc/machine-iac/module-keys", "--module-key-file=", func(in *operands.Inputs) { in.ModuleKeys = "keys" }},
		"state-keys":  {"/etc/machine-iac/state-keys", "--state-key-file=", func(in *operands.Inputs) { in.StateKeys = "keys" }},
	} {
		mounts := func(in operands.Inputs) (found []corev1.VolumeMount, source *corev1.CSIVolumeSource, flagged bool) {
			pod := deployment(t, in).Spec.Template.Spec
			for _, volume := range pod.Volumes {
				if volume.Name == name {
					source = volume.CSI
				}
			}
			for _, mount := range pod.Containers[0].VolumeMounts {
				if mount.MountPath == test.folder {
					found = append(found, mount)
				}
			}
			return found, source, slices.Contains(pod.Containers[0].Args, test.flag+test.folder)
		}
		if found, source, flagged := mounts(inputs()); len(found) != 0 || source != nil || flagged {
			t.Errorf("%s without the setting: %v of %v, flag %t", name, found, source, flagged)
		}
		found, source, flagged := mounts(inputs(test.named))
		if len(found) != 1 || !found[0].ReadOnly || !flagged {
			t.Errorf("%s: mounted %v, flag %t", name, found, flagged)
		}
		if source == nil || source.Driver != "secrets-store.csi.k8s.io" || !*source.ReadOnly || source.VolumeAttributes["secretProviderClass"] != "keys" {
			t.Errorf("%s: the volume is %+v", name, source)
		}
	}
}

func TestWebhooksAreLeftOut(t *testing.T) {
	without := inputs(func(in *operands.Inputs) { in.WithoutWebhooks = true })
	for _, one := range rendered(t, without) {
		if strings.HasSuffix(one.GetKind(), "WebhookConfiguration") {
			t.Errorf("%s is rendered", one.GetKind())
		}
	}
	unwanted, err := operands.Unwanted(install.FS, without)
	configurations := slices.DeleteFunc(unwanted, func(one *unstructured.Unstructured) bool {
		return !strings.HasSuffix(one.GetKind(), "WebhookConfiguration")
	})
	if err != nil || len(configurations) != 2 {
		t.Errorf("%d unwanted configurations of webhooks, want two (%v)", len(configurations), err)
	}
}

func TestWhatDependsOnTheCluster(t *testing.T) {
	kindsOf := func(in operands.Inputs) (all []string) {
		for _, one := range rendered(t, in) {
			all = append(all, one.GetKind())
		}
		return all
	}
	for _, kind := range []string{"DaemonSet", "MachineHealthCheck", "PrometheusRule", "ServiceMonitor"} {
		if slices.Contains(kindsOf(inputs()), kind) {
			t.Errorf("%s is rendered for every cluster", kind)
		}
	}
	all := kindsOf(inputs(func(in *operands.Inputs) { in.TerminationHandler, in.Monitoring = true, true }))
	for _, kind := range []string{"DaemonSet", "MachineHealthCheck", "PrometheusRule", "ServiceMonitor"} {
		if !slices.Contains(all, kind) {
			t.Errorf("%s is not rendered", kind)
		}
	}
	unwanted, err := operands.Unwanted(install.FS, inputs())
	if err != nil || len(unwanted) != 3 || unwanted[0].GetName() != "machine-api-termination-handler" {
		t.Errorf("%d unwanted objects, want the termination handler's three (%v)", len(unwanted), err)
	}
}

// TestOpenShiftsMonitorsFindEachController looks as ServiceMonitors of machine-api-operator do.
func TestOpenShiftsMonitorsFindEachController(t *testing.T) {
	onOpenShift := inputs(func(in *operands.Inputs) { in.ServiceCA = true })
	serving := map[string]int32{}
	for _, port := range deployment(t, onOpenShift).Spec.Template.Spec.Containers[0].Ports {
		serving[port.Name] = port.ContainerPort
	}
	found := false
	for _, one := range rendered(t, onOpenShift) {
		if one.GetKind() != "Service" || one.GetName() != operands.Deployment {
			continue
		}
		found = true
		if one.GetLabels()["k8s-app"] != "controller" || one.GetAnnotations()["service.beta.openshift.io/serving-cert-secret-name"] != "machine-api-controllers-tls" {
			t.Errorf("labels %v, annotations %v", one.GetLabels(), one.GetAnnotations())
		}
		service := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(one.Object, service); err != nil {
			t.Fatal(err)
		}
		got := map[string]int32{}
		for _, port := range service.Spec.Ports {
			if serving[port.TargetPort.StrVal] == port.Port {
				got[port.Name] = port.Port
			}
		}
		want := map[string]int32{"metrics": 8443, "machine-mtrc": 8441, "machineset-mtrc": 8442, "mhc-mtrc": 8444}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if !found {
		t.Error("there is no Service of the metrics")
	}
}

// TestPrometheusVerifiesTheCertificates compares how each ServiceMonitor verifies its endpoint.
func TestPrometheusVerifiesTheCertificates(t *testing.T) {
	const service, caFile = ".elsewhere.svc", "/etc/prometheus/configmaps/serving-certs-ca-bundle/service-ca.crt"
	for name, test := range map[string]struct {
		change func(*operands.Inputs)
		want   func(server string) map[string]any
	}{
		"by the authority of the webhooks": {func(*operands.Inputs) {}, func(server string) map[string]any {
			ca := map[string]any{"secret": map[string]any{"name": "machine-iac-webhook-cert", "key": "ca.crt"}}
			return map[string]any{"serverName": server + service, "ca": ca}
		}},
		"by the service CA": {func(in *operands.Inputs) { in.ServiceCA, in.WithoutWebhooks = true, true }, func(server string) map[string]any {
			return map[string]any{"serverName": server + service, "caFile": caFile}
		}},
		"not by one that flags replace": {func(in *operands.Inputs) { in.Arguments = []string{"--webhook-cert-dir=/own"} }, func(string) map[string]any {
			return map[string]any{"insecureSkipVerify": true}
		}},
		"not by the service CA that flags replace": {func(in *operands.Inputs) {
			in.ServiceCA, in.Arguments = true, []string{"--metrics-cert-dir=/own"}
		}, func(string) map[string]any { return map[string]any{"insecureSkipVerify": true} }},
		"not without webhooks": {func(in *operands.Inputs) { in.WithoutWebhooks = true }, func(string) map[string]any {
			return map[string]any{"insecureSkipVerify": true}
		}},
	} {
		monitors := 0
		for _, one := range rendered(t, inputs(test.change, func(in *operands.Inputs) { in.Namespace, in.Monitoring = "elsewhere", true })) {
			if one.GetKind() != "ServiceMonitor" {
				continue
			}
			monitors++
			endpoints, _, _ := unstructured.NestedSlice(one.Object, "spec", "endpoints")
			for _, endpoint := range endpoints {
				got, _, _ := unstructured.NestedMap(endpoint.(map[string]any), "tlsConfig")
				if diff := cmp.Diff(test.want(one.GetName()), got); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", name, one.GetName(), diff)
				}
			}
		}
		if monitors != 2 {
			t.Errorf("%s: %d ServiceMonitors, want two", name, monitors)
		}
	}
}

func TestABadManifestIsReportedWithItsName(t *testing.T) {
	for name, test := range map[string]struct{ manifest, want string }{
		"no YAML":             {"a: [", "x/broken.yaml"},
		"no container":        {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n", "Deployment d: it has no container machine-controllers"},
		"an image of its own": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: machine-controllers, image: other}]}}}\n", `is "other", not the placeholder`},
	} {
		_, err := operands.Render(fstest.MapFS{"x/broken.yaml": {Data: []byte(test.manifest)}}, inputs())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestTheDashboardIsWhereItIsLookedFor(t *testing.T) {
	boards := func(in operands.Inputs) (found []*unstructured.Unstructured) {
		for _, one := range rendered(t, in) {
			if one.GetKind() == "ConfigMap" {
				found = append(found, one)
			}
		}
		return found
	}
	content, err := install.FS.ReadFile("monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		in                      operands.Inputs
		namespace, label, value string
	}{
		"for Grafana": {
			inputs(func(in *operands.Inputs) { in.Monitoring, in.Namespace = true, "elsewhere" }), "elsewhere", "grafana_dashboard", "1",
		},
		"for the console of OpenShift": {
			inputs(func(in *operands.Inputs) { in.Monitoring, in.Console = true, true }), "openshift-config-managed", "console.openshift.io/dashboard", "true",
		},
	} {
		found := boards(test.in)
		if len(found) != 1 || found[0].GetName() != operands.Dashboard || found[0].GetNamespace() != test.namespace || found[0].GetLabels()[test.label] != test.value {
			t.Errorf("%s: %d ConfigMaps, the first is %v", name, len(found), found)
			continue
		}
		if data, _, _ := unstructured.NestedString(found[0].Object, "data", "machine-iac.json"); data != string(content) {
			t.Errorf("%s: it does not have the dashboard", name)
		}
	}
	if found := boards(inputs()); len(found) != 0 {
		t.Errorf("without the API of the Prometheus Operator there are %d ConfigMaps", len(found))
	}
}

func TestAllHasWhatAnyInputsRender(t *testing.T) {
	all, err := operands.All(install.FS, "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, one := range all {
		names[one.GetKind()+" "+one.GetNamespace()+"/"+one.GetName()] = true
	}
	for _, console := range []bool{false, true} {
		for _, one := range rendered(t, inputs(func(in *operands.Inputs) {
			in.Namespace, in.TerminationHandler, in.Monitoring, in.FailureDomains, in.Console = "elsewhere", true, true, true, console
		})) {
			if name := one.GetKind() + " " + one.GetNamespace() + "/" + one.GetName(); !names[name] {
				t.Errorf("%s is not among all", name)
			}
		}
	}
}
