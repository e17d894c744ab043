package main

import (
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/openshift/api/features"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/operator"
	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

// onOpenShift gives the cluster what OpenShift has, with a control plane of one node, and a MachineSet that lacks a Machine.
func onOpenShift(i *installation) {
	i.Helper()
	if err := i.plane.InstallClusterConfig(); err != nil {
		i.Fatal(err)
	}
	named := metav1.ObjectMeta{Name: "cluster"}
	one := int32(1)
	pool := map[string]string{"pool": "worker"}
	err := i.plane.Create(i.Context(),
		&configv1.Infrastructure{ObjectMeta: named, Status: configv1.InfrastructureStatus{
			InfrastructureName: "demo-x7k2p", ControlPlaneTopology: configv1.SingleReplicaTopologyMode, InfrastructureTopology: configv1.SingleReplicaTopologyMode,
			PlatformStatus: &configv1.PlatformStatus{Type: configv1.GCPPlatformType},
		}},
		&configv1.Proxy{ObjectMeta: named, Status: configv1.ProxyStatus{HTTPSProxy: "http://proxy.example.org:3128", NoProxy: ".svc"}},
		&configv1.APIServer{ObjectMeta: named},
		&configv1.FeatureGate{ObjectMeta: named, Status: configv1.FeatureGateStatus{FeatureGates: []configv1.FeatureGateDetails{
			{Version: "0.9.0", Disabled: []configv1.FeatureGateAttributes{}, Enabled: []configv1.FeatureGateAttributes{}},
			{Version: "1.0.0", Enabled: []configv1.FeatureGateAttributes{{Name: features.FeatureGateMachineAPIOperatorDisableMachineHealthCheckController}}},
		}}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operator.ImagesName}, Data: map[string]string{"images.json": `{"machineAPIOperator": "example.org/release@sha256:2"}`},
		},
		&machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "worker"}, Spec: machinev1beta1.MachineSetSpec{
			Replicas: &one, Selector: metav1.LabelSelector{MatchLabels: pool},
			Template: machinev1beta1.MachineTemplateSpec{ObjectMeta: machinev1beta1.ObjectMeta{Labels: pool}},
		}},
	)
	if err != nil {
		i.Fatal(err)
	}
}

func TestOnOpenShiftTheClusterOperatorIsWritten(t *testing.T) {
	i := installed(t, onOpenShift)
	i.eventually("the Deployment follows the cluster's configuration", func() (bool, error) { return i.followsOpenShift() })
	i.eventually("the termination handler is there", i.terminationHandler)

	i.rollOut()
	handler := &appsv1.DaemonSet{}
	key := client.ObjectKey{Namespace: namespace, Name: "machine-api-termination-handler"}
	if err := i.plane.Client.Get(t.Context(), key, handler); err != nil {
		t.Fatal(err)
	}
	handler.Status.ObservedGeneration = handler.Generation
	if err := i.plane.Client.Status().Update(t.Context(), handler); err != nil {
		t.Fatal(err)
	}
	// The first installation is not complete before the Machines are there.
	i.conditionsBecome("Available=False/Initializing Degraded=False/Initializing Progressing=True/SyncingResources Upgradeable=True/AsExpected")
	set := &machinev1beta1.MachineSet{}
	if err := i.plane.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "worker"}, set); err != nil {
		t.Fatal(err)
	}
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "worker-0", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, machinev1beta1.GroupVersion.WithKind("MachineSet"))},
	}}
	if err := i.plane.Client.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	i.conditionsBecome("Available=True/AsExpected Degraded=False/AsExpected Progressing=False/AsExpected Upgradeable=True/AsExpected")
}

func (i *installation) conditionsBecome(want string) {
	i.Helper()
	i.eventually("the ClusterOperator has "+want, func() (bool, error) {
		status, err := i.status(operator.ClusterOperator)
		return conditions(status) == want, err
	})
}

func (i *installation) followsOpenShift() (bool, error) {
	deployment := &appsv1.Deployment{}
	if err := i.plane.Client.Get(i.Context(), client.ObjectKey{Namespace: namespace, Name: operands.Deployment}, deployment); err != nil {
		return false, err
	}
	main := deployment.Spec.Template.Spec.Containers[0]
	flags := strings.Join(main.Args, " ")
	for _, want := range []string{"--controllers=*,-machinehealthcheck", "--webhook-cert-dir=", "--tls-min-version=VersionTLS12", "--tls-cipher-suites=TLS_ECDHE"} {
		if !strings.Contains(flags, want) {
			return false, nil
		}
	}
	proxied := slices.Contains(main.Env, corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy.example.org:3128"})
	return proxied && main.Image == "example.org/release@sha256:2" && *deployment.Spec.Replicas == 1, nil
}
