package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/openshift/api/features"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/operator"
	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// onOpenShift gives the cluster what OpenShift has, with a control plane of one node, and a
// MachineSet that lacks a Machine.
func onOpenShift(i *installation) {
	i.Helper()
	if err := errors.Join(i.plane.InstallClusterConfig(), i.plane.InstallServiceCA()); err != nil {
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
			{Version: "1.0.0", Enabled: []configv1.FeatureGateAttributes{{Name: features.FeatureGateMachineAPIOperatorDisableMachineHealthCheckController}, {Name: features.FeatureGateVSphereHostVMGroupZonal}}},
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
	long.Test(t)
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
	for _, want := range []string{"--adoption=OnRequest", "--controllers=*,-machinehealthcheck", "--feature-gates=AWSDedicatedHosts=false,VSphereHostVMGroupZonal=true", "--webhook-cert-dir=", "--tls-min-version=VersionTLS12", "--tls-cipher-suites=TLS_ECDHE"} {
		if !strings.Contains(flags, want) {
			return false, nil
		}
	}
	if pod := deployment.Spec.Template; pod.Spec.NodeSelector["node-role.kubernetes.io/master"] != "" || len(pod.Spec.NodeSelector) != 1 ||
		len(pod.Spec.Tolerations) != 5 || pod.Annotations["openshift.io/required-scc"] != "nonroot-v2" {
		return false, nil
	}
	proxied := slices.Contains(main.Env, corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy.example.org:3128"})
	return proxied && main.Image == "example.org/release@sha256:2" && *deployment.Spec.Replicas == 1, nil
}

// The oldest manuals have people create an Infrastructure on a plain cluster. No service CA makes a
// certificate there, and masters may have no label.
func TestAnInfrastructureAloneIsNotOpenShift(t *testing.T) {
	long.Test(t)
	i := installed(t, func(i *installation) {
		if err := i.plane.InstallClusterConfig(); err != nil {
			t.Fatal(err)
		}
		plain := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: configv1.InfrastructureStatus{
			Platform:             configv1.NonePlatformType, //nolint:staticcheck // what plain clusters have
			ControlPlaneTopology: configv1.HighlyAvailableTopologyMode, InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
		}}
		if err := i.plane.Create(t.Context(), plain); err != nil {
			t.Fatal(err)
		}
	})
	deployment := &appsv1.Deployment{}
	i.eventually("the Deployment is there", func() (bool, error) {
		err := i.plane.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: operands.Deployment}, deployment)
		return err == nil, err
	})
	pod := deployment.Spec.Template
	if flags := strings.Join(pod.Spec.Containers[0].Args, " "); strings.Contains(flags, "--webhook-cert-dir") || strings.Contains(flags, "--adoption") {
		t.Errorf("the flags are OpenShift's: %s", flags)
	}
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "webhook-cert" }) || len(pod.Spec.NodeSelector) > 0 {
		t.Errorf("the Pods wait for %v and Nodes with %v", pod.Spec.Volumes, pod.Spec.NodeSelector)
	}
}

// TestOnOpenShiftTheConsoleAndTheTLSProfile has an API server of its own, whose APIServer has the
// fields of feature gates and which has the API of the Prometheus Operator and the namespace of the
// console's dashboards.
func TestOnOpenShiftTheConsoleAndTheTLSProfile(t *testing.T) {
	long.Test(t)
	console := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operands.ConsoleNamespace}}
	server := &configv1.APIServer{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	var address string
	i := installed(t, func(i *installation) {
		i.metrics = freeAddress(t)
		address = i.metrics
		if err := i.plane.InstallClusterConfig(); err != nil {
			t.Fatal(err)
		}
		if err := i.plane.InstallAPIServerWithAdherence(); err != nil {
			t.Fatal(err)
		}
		if err := i.plane.InstallMonitoring(); err != nil {
			t.Fatal(err)
		}
		if err := i.plane.Create(t.Context(), console, server); err != nil {
			t.Fatal(err)
		}
	})
	i.eventually("the endpoint of the metrics accepts TLS 1.2", func() (bool, error) { return accepts(address, tls.VersionTLS12) })
	i.theDashboardIsKept()

	server.Spec.TLSSecurityProfile = &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType, Modern: &configv1.ModernTLSProfile{}}
	server.Spec.TLSAdherence = configv1.TLSAdherencePolicyStrictAllComponents
	if err := i.plane.Client.Update(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	i.eventually("the controllers follow the profile", func() (bool, error) {
		deployment := &appsv1.Deployment{}
		err := i.plane.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: operands.Deployment}, deployment)
		return err == nil && slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--tls-min-version=VersionTLS13"), err
	})
	i.eventually("the endpoint of the metrics follows the profile", func() (bool, error) {
		newest, err := accepts(address, tls.VersionTLS13)
		if err != nil || !newest {
			return false, err
		}
		older, err := accepts(address, tls.VersionTLS12)
		return !older, err
	})
	// Started anew, it still keeps the installation.
	edit(i, &corev1.Service{}, operands.Deployment, func(s *corev1.Service) { s.Spec.Ports[0].Port = 9 }, func(s *corev1.Service) bool {
		return len(s.Spec.Ports) == 1 && s.Spec.Ports[0].Port == 8443
	})
}

// theDashboardIsKept expects the dashboard where OpenShift's console looks for it, whatever happens
// to it.
func (i *installation) theDashboardIsKept() {
	board := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: operands.ConsoleNamespace, Name: operands.Dashboard}
	kept := func() (bool, error) {
		err := i.plane.Client.Get(i.Context(), key, board)
		return len(board.Data) == 1 && board.Labels["console.openshift.io/dashboard"] == "true" && board.DeletionTimestamp == nil, err
	}
	i.eventually("the console has the dashboard", kept)
	i.eventually("the ServiceMonitor of the operator is there", func() (bool, error) {
		monitor := &unstructured.Unstructured{}
		monitor.SetAPIVersion("monitoring.coreos.com/v1")
		monitor.SetKind("ServiceMonitor")
		monitor.SetNamespace(namespace)
		monitor.SetName("machine-api-operator")
		_, err := i.live(monitor)
		return err == nil, err
	})
	board.Data["theirs"] = "x"
	if err := i.plane.Client.Update(i.Context(), board); err != nil {
		i.Fatal(err)
	}
	i.eventually("the edit of the dashboard is taken back", kept)
	was := board.UID
	if err := i.plane.Client.Delete(i.Context(), board); err != nil {
		i.Fatal(err)
	}
	i.eventually("the dashboard is back", func() (bool, error) {
		there, err := kept()
		return there && board.UID != was, err
	})
}

// freeAddress returns an address that is free, and stays so while its server starts anew: the
// kernel gives nobody else a port below 32768.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))); err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// accepts reports whether a server takes a connection of at most this version of TLS. An error says
// that there is no server.
func accepts(address string, version uint16) (bool, error) {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false, err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return false, err
	}
	client := tls.Client(connection, &tls.Config{InsecureSkipVerify: true, MaxVersion: version}) // it has made its certificate itself
	err = client.Handshake()
	if err != nil && strings.Contains(err.Error(), "protocol version not supported") {
		return false, nil
	}
	return err == nil, err
}

// TestFailureDomainsOfVSphereAreKept follows the feature gate VSphereMultiVCenterDay2, with the
// rights of the operator: who makes a policy must be able to read its parameters.
func TestFailureDomainsOfVSphereAreKept(t *testing.T) {
	long.Test(t)
	named := metav1.ObjectMeta{Name: "cluster"}
	gates := &configv1.FeatureGate{ObjectMeta: named, Status: configv1.FeatureGateStatus{FeatureGates: []configv1.FeatureGateDetails{{
		Version: "1.0.0", Enabled: []configv1.FeatureGateAttributes{{Name: features.FeatureGateVSphereMultiVCenterDay2}},
	}}}}
	i := installed(t, func(i *installation) {
		err := errors.Join(i.plane.InstallClusterConfig(), i.plane.InstallControlPlaneMachineSets(), i.plane.Create(t.Context(), gates,
			&configv1.Infrastructure{ObjectMeta: named, Status: configv1.InfrastructureStatus{
				PlatformStatus:       &configv1.PlatformStatus{Type: configv1.VSpherePlatformType},
				ControlPlaneTopology: configv1.HighlyAvailableTopologyMode, InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
			}}))
		if err != nil {
			t.Fatal(err)
		}
	})
	count := func() (int, error) {
		policies, bindings := &admissionregistrationv1.ValidatingAdmissionPolicyList{}, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}
		err := errors.Join(i.plane.Client.List(t.Context(), policies), i.plane.Client.List(t.Context(), bindings))
		return len(policies.Items) + len(bindings.Items), err
	}
	i.eventually("there are three policies and their bindings", func() (bool, error) {
		found, err := count()
		return found == 6, err
	})
	gates.Status.FeatureGates[0].Enabled = []configv1.FeatureGateAttributes{}
	if err := i.plane.Client.Status().Update(t.Context(), gates); err != nil {
		t.Fatal(err)
	}
	i.eventually("they go with the gate", func() (bool, error) {
		found, err := count()
		return found == 0, err
	})
}
