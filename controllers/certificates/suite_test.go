package certificates_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/certificates"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestCertificates(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Certificates controller")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	plane = suite.Start(controlplane.Default)
	Expect(plane.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "requesters"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}},
	})).To(Succeed())
	apply(ctx, "cluster-role.yaml")
})

// apply creates the objects of a file of install/certificate-approver.
func apply(ctx SpecContext, file string) {
	GinkgoHelper()
	content, err := os.Open(filepath.Join("..", "..", "install", "certificate-approver", file))
	Expect(err).NotTo(HaveOccurred())
	documents := utilyaml.NewYAMLOrJSONDecoder(content, 4096)
	for object := new(unstructured.Unstructured); documents.Decode(object) == nil; object = new(unstructured.Unstructured) {
		Expect(plane.Client.Create(ctx, object)).To(Succeed())
	}
	Expect(content.Close()).To(Succeed())
}

// as returns a client of a user.
func as(user string, groups ...string) client.Client {
	GinkgoHelper()
	config := rest.CopyConfig(plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	c, err := client.New(config, client.Options{Scheme: plane.Scheme, Mapper: plane.Client.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// asked is what a requester asks for.
type asked struct {
	user     string
	groups   []string
	signer   string
	usages   []certificatesv1.KeyUsage
	key      *ecdsa.PrivateKey
	template x509.CertificateRequest
}

func newKey() *ecdsa.PrivateKey {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	return key
}

// ofKubelet is what a kubelet asks for.
func ofKubelet(node string) asked {
	return asked{key: newKey(), template: x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}}
}

// ofClient is what the kubelet of a Machine asks for to register its Node.
func ofClient(machine *machinev1beta1.Machine) asked {
	r := ofKubelet(machine.Name)
	r.user, r.groups = bootstrapUser(machine), []string{"system:bootstrappers", "system:bootstrappers:test"}
	r.signer = certificatesv1.KubeAPIServerClientKubeletSignerName
	r.usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	return r
}

// ofServer is what the kubelet of a Node asks for to serve.
func ofServer(node string) asked {
	r := ofKubelet(node)
	r.user, r.groups = "system:node:"+node, []string{"system:nodes"}
	r.signer = certificatesv1.KubeletServingSignerName
	r.usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth}
	return r
}

func (a asked) request(ctx SpecContext) *certificatesv1.CertificateSigningRequest {
	GinkgoHelper()
	raw, err := x509.CreateCertificateRequest(rand.Reader, &a.template, a.key)
	Expect(err).NotTo(HaveOccurred())
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: builder.Name("csr")},
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: a.signer, Usages: a.usages,
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw})},
	}
	Expect(as(a.user, a.groups...).Create(ctx, csr)).To(Succeed())
	return csr
}

func bootstrapUser(machine *machinev1beta1.Machine) string {
	return "system:bootstrap:" + string(machine.UID)[:6]
}

// world is a namespace with the controller on it.
type world struct {
	namespace string
	series    *prometheus.Registry
}

func start(ctx SpecContext, options ...func(*certificates.Options)) *world {
	GinkgoHelper()
	w := &world{namespace: suite.Namespace(ctx, plane), series: prometheus.NewRegistry()}
	series := certificates.NewMetrics()
	w.series.MustRegister(series.Collectors()...)
	chosen := certificates.Options{BootstrapUser: bootstrapUser, Metrics: series}
	for _, option := range options {
		option(&chosen)
	}
	mgr := suite.NewManager(plane, w.namespace)
	Expect(certificates.SetupWithManager(ctx, mgr, chosen)).To(Succeed())
	suite.Run(mgr)
	DeferCleanup(func(ctx SpecContext) {
		Expect(plane.Client.DeleteAllOf(ctx, &certificatesv1.CertificateSigningRequest{})).To(Succeed())
	})
	return w
}

// count returns the value of a series, by the values of its labels.
func (w *world) count(name string, labels ...string) func() float64 {
	return func() float64 {
		families, err := w.series.Gather()
		Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			if family.GetName() != "machine_iac_certificate_requests_"+name {
				continue
			}
			for _, metric := range family.GetMetric() {
				has := make([]string, 0, len(labels))
				for _, pair := range metric.GetLabel() {
					has = append(has, pair.GetValue())
				}
				if matches, _ := Equal(append([]string{}, labels...)).Match(has); matches {
					return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
				}
			}
		}
		return -1
	}
}

// machine makes a Machine with an instance.
func (w *world) machine(ctx SpecContext, mods ...func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
	GinkgoHelper()
	machine := builder.Machine(builder.WithProviderID("test:///"+builder.Name("instance")), func(m *machinev1beta1.Machine) {
		m.Namespace = w.namespace
		m.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeExternalIP, Address: "2001:db8::1"},
			{Type: corev1.NodeInternalDNS, Address: m.Name + ".internal"}, {Type: corev1.NodeExternalDNS, Address: m.Name + ".example"},
		}
	})
	for _, mod := range mods {
		mod(machine)
	}
	Expect(plane.Create(ctx, machine)).To(Succeed())
	return machine
}

// joined makes a Machine with an instance and a Node.
func (w *world) joined(ctx SpecContext) (*machinev1beta1.Machine, *corev1.Node) {
	GinkgoHelper()
	node := builder.Node()
	Expect(plane.Create(ctx, node)).To(Succeed())
	return w.machine(ctx, builder.WithNodeRef(node)), node
}

func approval(ctx SpecContext, csr *certificatesv1.CertificateSigningRequest) func(Gomega) []certificatesv1.CertificateSigningRequestCondition {
	return func(g Gomega) []certificatesv1.CertificateSigningRequestCondition {
		g.Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(csr), csr)).To(Succeed())
		return csr.Status.Conditions
	}
}

func (w *world) approves(ctx SpecContext, csr *certificatesv1.CertificateSigningRequest, machine *machinev1beta1.Machine) {
	GinkgoHelper()
	Eventually(approval(ctx, csr)).Should(ConsistOf(And(HaveField("Type", certificatesv1.CertificateApproved),
		HaveField("Message", ContainSubstring(machine.Namespace+"/"+machine.Name)))))
}

func (w *world) refuses(ctx SpecContext, csr *certificatesv1.CertificateSigningRequest, kind, reason string) {
	GinkgoHelper()
	Eventually(w.count("refused_total", kind, reason)).Should(BeNumerically(">", 0), reason)
	Expect(approval(ctx, csr)(Default)).To(BeEmpty())
}
