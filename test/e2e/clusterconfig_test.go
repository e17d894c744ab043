//go:build e2e

package e2e_test

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

// reachedAs configures access to the infrastructure in the cluster, as OpenShift does, instead of by the engines'
// environment.
func (w *world) reachedAs(ctx context.Context, environment map[string]string) {
	GinkgoHelper()
	config, err := w.cluster.AdminConfig()
	Expect(err).NotTo(HaveOccurred())
	Expect(controlplane.InstallClusterConfig(config)).To(Succeed())
	certificate, err := os.ReadFile(environment["SSL_CERT_FILE"])
	Expect(err).NotTo(HaveOccurred())

	managed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-config-managed"}}
	Expect(client.IgnoreAlreadyExists(w.client.Create(ctx, managed))).To(Succeed())
	named := metav1.ObjectMeta{Name: "cluster"}
	infrastructure := &configv1.Infrastructure{ObjectMeta: named}
	proxy := &configv1.Proxy{ObjectMeta: named}
	authorities := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: managed.Name, Name: "kube-cloud-config"},
		Data:       map[string]string{"ca-bundle.pem": string(certificate)},
	}
	// after the objects are deleted: the manager renders what it read into Machines' inputs
	DeferCleanup(func(ctx SpecContext) { w.pod.restart(ctx) })
	for _, object := range []client.Object{infrastructure, proxy, authorities} {
		w.create(ctx, object)
		DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, object)).To(Succeed()) })
	}
	infrastructure.Status = configv1.InfrastructureStatus{
		InfrastructureName: clusterID, PlatformStatus: &configv1.PlatformStatus{Type: configv1.VSpherePlatformType},
		ControlPlaneTopology:   configv1.HighlyAvailableTopologyMode,
		InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
	}
	Expect(w.client.Status().Update(ctx, infrastructure)).To(Succeed())
	proxy.Status.HTTPSProxy = environment["HTTPS_PROXY"]
	Expect(w.client.Status().Update(ctx, proxy)).To(Succeed())
}
