package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/machine-iac/machine-iac-operator/install"
	"github.com/machine-iac/machine-iac-operator/internal/operator"
	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

const (
	root      = "../.."
	namespace = operands.Namespace
	// soon is when what the operator does must be done; it promises a minute.
	soon = 30 * time.Second
)

// installation is an API server with the operator on it, which runs with the rights of its service
// account.
type installation struct {
	*testing.T
	plane *controlplane.ControlPlane
	// metrics is the address of the metrics endpoint; 0 for none.
	metrics string
}

// installed applies install/kubernetes as an administrator does, and runs the operator until the
// test ends. Before, the cluster is prepared.
func installed(t *testing.T, prepare ...func(*installation)) *installation {
	t.Helper()
	plane, err := controlplane.Start(controlplane.Default)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	i := &installation{T: t, plane: plane, metrics: "0"}
	admin := i.kubeconfig(&clientcmdapi.AuthInfo{ClientCertificateData: plane.Config.CertData, ClientKeyData: plane.Config.KeyData})
	for _, arguments := range [][]string{
		{"create", "-f", filepath.Join(root, "install", "kubernetes", "namespace.yaml")},
		{"apply", "-k", filepath.Join(root, "install", "kubernetes")},
	} {
		command := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "kubectl"), append([]string{"--kubeconfig", admin}, arguments...)...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
	}
	for _, one := range prepare {
		one(i)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "machine-api-operator"}}
	token := &authenticationv1.TokenRequest{}
	if err := plane.Client.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	o := options{
		kubeconfig: i.kubeconfig(&clientcmdapi.AuthInfo{Token: token.Status.Token}), namespace: namespace, image: "example.org/machine-iac-operator:v1",
		release: "1.0.0", metricsAddress: i.metrics, healthAddress: "0", leaderElect: true,
	}
	var log logged
	ctrl.SetLogger(zap.New(zap.WriteTo(&log)))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the operator: %v", err)
		}
	})
	return i
}

func (i *installation) kubeconfig(as *clientcmdapi.AuthInfo) string {
	i.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: i.plane.Config.Host, CertificateAuthorityData: i.plane.Config.CAData}
	config.AuthInfos["u"] = as
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := filepath.Join(i.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		i.Fatal(err)
	}
	return file
}

// logged keeps what the operator logs.
type logged struct {
	mu sync.Mutex
	bytes.Buffer
}

// Write implements io.Writer.
func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(line)
}

// eventually waits until a condition holds.
func (i *installation) eventually(what string, holds func() (bool, error)) {
	i.Helper()
	var err error
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var done bool
		if done, err = holds(); done && err == nil {
			return
		}
	}
	i.Fatalf("not within %s: %s (%v)", soon, what, err)
}

// operands returns what the operator applies.
func (i *installation) operands() []*unstructured.Unstructured {
	i.Helper()
	objects, err := operands.Render(install.FS, operands.Inputs{Namespace: namespace, Version: "1.0.0", Image: "example.org/machine-iac-operator:v1"})
	if err != nil {
		i.Fatal(err)
	}
	return objects
}

// live returns an object of the cluster.
func (i *installation) live(like client.Object) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(like.GetObjectKind().GroupVersionKind())
	return object, i.plane.Client.Get(i.Context(), client.ObjectKeyFromObject(like), object)
}

// status returns what the operator has written last, to an object of the kind that the cluster has.
func (i *installation) status(kind schema.GroupVersionKind) (status configv1.ClusterOperatorStatus, err error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := i.plane.Client.Get(i.Context(), client.ObjectKey{Name: operator.StatusName}, object); err != nil {
		return status, err
	}
	fields, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil {
		return status, err
	}
	return status, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status)
}

func conditions(status configv1.ClusterOperatorStatus) string {
	var all []string
	for _, one := range status.Conditions {
		if one.Type == "ChangesReverted" {
			continue // editsAreTakenBack has its test
		}
		all = append(all, fmt.Sprintf("%s=%s/%s", one.Type, one.Status, one.Reason))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestTheInstallationIsKept(t *testing.T) {
	i := installed(t)
	i.eventually("every operand is there", func() (bool, error) {
		for _, one := range i.operands() {
			if _, err := i.live(one); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	t.Run("deleted", func(t *testing.T) { i.with(t).deletedOperandsComeBack() })
	t.Run("edited", func(t *testing.T) { i.with(t).editsAreTakenBack() })
	t.Run("others", func(t *testing.T) { i.with(t).whatIsOthersStays() })
	t.Run("reported", func(t *testing.T) { i.with(t).theRolloutIsReported() })
	t.Run("a CRD that was deleted", func(t *testing.T) { i.with(t).aDeletedCRDIsReported() })
}

func (i *installation) with(t *testing.T) *installation { return &installation{T: t, plane: i.plane} }

func (i *installation) deletedOperandsComeBack() {
	for _, one := range i.operands() {
		if one.GetKind() == "ServiceAccount" || one.GetKind() == "Deployment" {
			continue // below
		}
		i.comesBack(one)
	}
	for _, one := range i.operands() {
		if one.GetKind() == "Deployment" || one.GetKind() == "ServiceAccount" {
			i.comesBack(one)
		}
	}
}

func (i *installation) comesBack(one *unstructured.Unstructured) {
	i.Helper()
	before, err := i.live(one)
	if err != nil {
		i.Fatal(err)
	}
	if err := i.plane.Client.Delete(i.Context(), one.DeepCopy()); err != nil {
		i.Fatal(err)
	}
	i.eventually(one.GetKind()+" "+one.GetName()+" is back", func() (bool, error) {
		after, err := i.live(one)
		return err == nil && after.GetUID() != before.GetUID() && after.GetDeletionTimestamp() == nil, err
	})
}

// edit changes an object of the cluster as kubectl edit does, and waits until an edit has been
// taken back.
func edit[T client.Object](i *installation, object T, name string, change func(T), back func(T) bool) {
	i.Helper()
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if namespaced, err := i.plane.Client.IsObjectNamespaced(object); err != nil {
		i.Fatal(err)
	} else if !namespaced {
		key.Namespace = ""
	}
	read := func() error { return i.plane.Client.Get(i.Context(), key, object) }
	if err := read(); err != nil {
		i.Fatal(err)
	}
	change(object)
	if err := i.plane.Client.Update(i.Context(), object, client.FieldOwner("kubectl-edit")); err != nil {
		i.Fatal(err)
	}
	i.eventually("the edit of "+name+" is taken back", func() (bool, error) {
		if err := read(); err != nil {
			return false, err
		}
		return back(object), nil
	})
}

func (i *installation) editsAreTakenBack() {
	main := func(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }
	edit(i, &appsv1.Deployment{}, operands.Deployment, func(d *appsv1.Deployment) {
		none := int32(0)
		d.Spec.Replicas = &none
		main(d).Image = "example.org/other"
		main(d).Env = append(main(d).Env, corev1.EnvVar{Name: "ADDED", Value: "x"})
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "added", Image: "x"})
	}, func(d *appsv1.Deployment) bool {
		added := slices.ContainsFunc(main(d).Env, func(e corev1.EnvVar) bool { return e.Name == "ADDED" })
		return *d.Spec.Replicas == 2 && main(d).Image == "example.org/machine-iac-operator:v1" && !added && len(d.Spec.Template.Spec.Containers) == 1
	})
	i.eventually("the status says what was reverted", func() (bool, error) {
		status, err := i.status(operator.MachineAPIOperator)
		return slices.ContainsFunc(status.Conditions, func(one configv1.ClusterOperatorStatusCondition) bool {
			return one.Type == "ChangesReverted" && one.Status == configv1.ConditionTrue && strings.Contains(one.Message, "Deployment "+namespace+"/machine-api-controllers (field manager kubectl-edit)")
		}), err
	})
	edit(i, &corev1.Service{}, "machine-api-operator-webhook", func(s *corev1.Service) {
		s.Spec.Ports[0].Port = 444
	}, func(s *corev1.Service) bool { return len(s.Spec.Ports) == 1 && s.Spec.Ports[0].Port == 443 })
	edit(i, &rbacv1.ClusterRole{}, operands.Deployment, func(r *rbacv1.ClusterRole) {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}})
	}, func(r *rbacv1.ClusterRole) bool {
		return !slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Verbs, "*") })
	})
	edit(i, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "machine-api", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
		c.Webhooks = c.Webhooks[:1]
		fail := admissionregistrationv1.Fail
		c.Webhooks[0].FailurePolicy = &fail
	}, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
		return len(c.Webhooks) > 1 && *c.Webhooks[0].FailurePolicy == admissionregistrationv1.Ignore
	})
}

func (i *installation) whatIsOthersStays() {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "machine-api"}}
	if err := i.plane.Client.Get(i.Context(), client.ObjectKeyFromObject(configuration), configuration); err != nil {
		i.Fatal(err)
	}
	for n := range configuration.Webhooks {
		configuration.Webhooks[n].ClientConfig.CABundle = i.plane.Config.CAData
	}
	configuration.Labels["example.org/theirs"] = "yes"
	if err := i.plane.Client.Update(i.Context(), configuration, client.FieldOwner("service-ca")); err != nil {
		i.Fatal(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operands.Deployment}}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	if err := i.plane.Client.SubResource("scale").Update(i.Context(), deployment, client.WithSubResourceBody(scale), client.FieldOwner("autoscaler")); err != nil {
		i.Fatal(err)
	}
	// An edit shows when the operator has looked at everything again.
	edit(i, &corev1.Service{}, operands.Deployment, func(s *corev1.Service) { s.Spec.Ports[0].Port = 9 }, func(s *corev1.Service) bool {
		return len(s.Spec.Ports) == 1 && s.Spec.Ports[0].Port == 8443
	})
	if err := i.plane.Client.Get(i.Context(), client.ObjectKeyFromObject(configuration), configuration); err != nil {
		i.Fatal(err)
	}
	if configuration.Labels["example.org/theirs"] != "yes" || !bytes.Equal(configuration.Webhooks[0].ClientConfig.CABundle, i.plane.Config.CAData) {
		i.Error("the label or the CA of somebody else is gone")
	}
	if err := i.plane.Client.Get(i.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		i.Fatal(err)
	}
	if *deployment.Spec.Replicas != 3 {
		i.Errorf("%d replicas, want the 3 of the autoscaler", *deployment.Spec.Replicas)
	}
}

func (i *installation) theRolloutIsReported() {
	i.eventually("the status says that the version is not rolled out", func() (bool, error) {
		status, err := i.status(operator.MachineAPIOperator)
		return conditions(status) == "Available=False/Initializing Degraded=False/Initializing Progressing=True/SyncingResources Upgradeable=True/AsExpected", err
	})
	i.aCrashIsReported()
	deployment := i.rollOut()
	i.eventually("the status says that the version is rolled out", func() (bool, error) {
		status, err := i.status(operator.MachineAPIOperator)
		available := conditions(status) == "Available=True/AsExpected Degraded=False/AsExpected Progressing=False/AsExpected Upgradeable=True/AsExpected"
		return available && len(status.Versions) == 1 && status.Versions[0].Version == "1.0.0" && len(status.RelatedObjects) > 10, err
	})
	// A setting that is none.
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operator.SettingsName}, Data: map[string]string{"webhook": "Disabled"}}
	if err := i.plane.Client.Create(i.Context(), settings); err != nil {
		i.Fatal(err)
	}
	i.eventually("a wrong setting is reported", func() (bool, error) {
		status, err := i.status(operator.MachineAPIOperator)
		return strings.Contains(conditions(status), "Available=True/AsExpected Degraded=True/SyncingFailed"), err
	})
	settings.Data = map[string]string{"platform": "AWS"}
	if err := i.plane.Client.Update(i.Context(), settings); err != nil {
		i.Fatal(err)
	}
	i.eventually("the termination handler is where there are Spot instances", func() (bool, error) { return i.terminationHandler() })
	settings.Data = map[string]string{"webhooks": "Disabled", "platform": "kubemark", "arguments": "--max-concurrent-runs=3\n",
		"providers": "[{image: 'x@sha256:" + strings.Repeat("0a", 32) + "', mount: true}]"}
	if err := i.plane.Client.Update(i.Context(), settings); err != nil {
		i.Fatal(err)
	}
	i.eventually("the termination handler is gone", func() (bool, error) {
		there, err := i.terminationHandler()
		return !there, err
	})
	i.eventually("the settings are taken over", func() (bool, error) {
		if err := i.plane.Client.Get(i.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return false, err
		}
		hook := &unstructured.Unstructured{}
		hook.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"))
		hook.SetName("machine-api")
		_, err := i.live(hook)
		flags := strings.Join(deployment.Spec.Template.Spec.Containers[0].Args, " ")
		return client.IgnoreNotFound(err) == nil && err != nil && strings.HasSuffix(flags, "--webhook-enabled=false --provider-mirror=/var/lib/machine-iac-providers/mirror "+
			"--cluster-fact=platform=kubemark --max-concurrent-runs=3"), nil
	})
	spec := deployment.Spec.Template.Spec
	if last := spec.Volumes[len(spec.Volumes)-1]; last.Image == nil {
		i.Errorf("the API server has made %+v of the volume with providers", last)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mounts"}, Spec: spec}
	if err := i.plane.Client.Create(i.Context(), pod, client.DryRunAll); err != nil {
		i.Errorf("a Pod with an image volume: %v", err)
	}
}

func (i *installation) aDeletedCRDIsReported() {
	i.rollOut()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operator.SettingsName}}
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("machines.machine.openshift.io")
	if err := i.plane.Client.Get(i.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		i.Fatal(err)
	}
	if err := i.plane.Client.Delete(i.Context(), crd.DeepCopy()); err != nil {
		i.Fatal(err)
	}
	i.eventually("the CRD is missed", func() (bool, error) {
		poke := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"at":"%d"}}}`, time.Now().UnixNano()))
		if err := i.plane.Client.Patch(i.Context(), settings, poke); err != nil { // sooner than the next resync
			return false, err
		}
		status, err := i.status(operator.MachineAPIOperator)
		return strings.HasPrefix(conditions(status), "Available=False/CRDsMissing Degraded=True/CRDsMissing"), err
	})
	crd.SetResourceVersion("")
	crd.SetUID("")
	unstructured.RemoveNestedField(crd.Object, "status")
	if err := i.plane.Client.Create(i.Context(), crd); err != nil {
		i.Fatal(err)
	}
	i.eventually("the installation is well again", func() (bool, error) {
		status, err := i.status(operator.MachineAPIOperator)
		return strings.HasPrefix(conditions(status), "Available=True/AsExpected Degraded=False/AsExpected"), err
	})
}

// aCrashIsReported plays the kubelet's part, which does not run here.
func (i *installation) aCrashIsReported() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crashing", Labels: operands.ControllerLabels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "machine-controllers", Image: "x"}}},
	}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	pod.Spec.ServiceAccountName = operands.Deployment
	if err := i.plane.Client.Create(i.Context(), pod); err != nil {
		i.Fatal(err)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "machine-controllers", RestartCount: 2,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "first\nno such folder\n"}},
	}}
	if err := i.plane.Client.Status().Update(i.Context(), pod); err != nil {
		i.Fatal(err)
	}
	i.eventually("the crash is reported", func() (bool, error) {
		status, err := i.status(operator.MachineAPIOperator)
		for _, one := range status.Conditions {
			if one.Type == configv1.OperatorDegraded && one.Status == configv1.ConditionTrue {
				return one.Reason == "ControllersCrash" && strings.HasSuffix(one.Message, "/crashing has crashed 2 times, last with exit code 1: no such folder"), err
			}
		}
		return false, err
	})
	if err := i.plane.Client.Delete(i.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		i.Fatal(err)
	}
	i.eventually("the crash is over", func() (bool, error) {
		status, err := i.status(operator.MachineAPIOperator)
		return strings.Contains(conditions(status), "Degraded=False/AsExpected Progressing=True/SyncingResources"), err
	})
}

// terminationHandler reports whether the DaemonSet and the MachineHealthCheck for terminations are
// there.
func (i *installation) terminationHandler() (bool, error) {
	key := client.ObjectKey{Namespace: namespace, Name: "machine-api-termination-handler"}
	for _, object := range []client.Object{&appsv1.DaemonSet{}, &machinev1beta1.MachineHealthCheck{}} {
		if err := i.plane.Client.Get(i.Context(), key, object); err != nil {
			return false, client.IgnoreNotFound(err)
		}
	}
	return true, nil
}

// rollOut plays the part of the controller of Deployments, which does not run here.
func (i *installation) rollOut() *appsv1.Deployment {
	i.Helper()
	deployment := &appsv1.Deployment{}
	if err := i.plane.Client.Get(i.Context(), client.ObjectKey{Namespace: namespace, Name: operands.Deployment}, deployment); err != nil {
		i.Fatal(err)
	}
	complete(deployment)
	if err := i.plane.Client.Status().Update(i.Context(), deployment); err != nil {
		i.Fatal(err)
	}
	return deployment
}

// complete writes into a Deployment's status that it has been available for a while.
func complete(deployment *appsv1.Deployment) {
	replicas := *deployment.Spec.Replicas
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-4 * time.Minute)),
		}},
	}
}
