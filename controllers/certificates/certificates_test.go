package certificates_test

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/certificates"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var _ = Describe("A client certificate", func() {
	It("is approved for the kubelet of a Machine, by its name or an internal name", func(ctx SpecContext) {
		w := start(ctx)
		first, second := w.machine(ctx), w.machine(ctx)
		w.approves(ctx, ofClient(first).request(ctx), first)
		named := ofClient(second)
		named.template.Subject.CommonName = "system:node:" + second.Name + ".internal"
		named.usages = append(named.usages, certificatesv1.UsageKeyEncipherment)
		w.approves(ctx, named.request(ctx), second)
		Expect(w.count("approved_total", "client")()).To(BeEquivalentTo(2))
		Eventually(w.count("pending")).Should(BeZero())
	})

	It("is approved for any bootstrapper where the manager makes no tokens", func(ctx SpecContext) {
		w := start(ctx, func(o *certificates.Options) { o.BootstrapUser = nil })
		machine := w.machine(ctx)
		shared := ofClient(machine)
		shared.user = "system:bootstrap:shared"
		w.approves(ctx, shared.request(ctx), machine)
	})

	It("waits until its Machine has an instance", func(ctx SpecContext) {
		w := start(ctx)
		machine := w.machine(ctx, func(m *machinev1beta1.Machine) { m.Spec.ProviderID = nil })
		csr := ofClient(machine).request(ctx)
		w.refuses(ctx, csr, "client", "machine")
		w.provisioned(ctx, machine)
		w.approves(ctx, csr, machine)
	})

	DescribeTable("is not approved", func(ctx SpecContext, reason string, change func(*asked)) {
		w := start(ctx)
		a := ofClient(w.machine(ctx))
		change(&a)
		w.refuses(ctx, a.request(ctx), "client", reason)
	},
		Entry("for a Node of no Machine", "machine", func(a *asked) { a.template.Subject.CommonName = "system:node:foreign" }),
		Entry("for an external name of a Machine", "machine", func(a *asked) { a.template.Subject.CommonName += ".example" }),
		Entry("for a user that is no Node", "subject", func(a *asked) { a.template.Subject.CommonName = "admin" }),
		Entry("for a Node without a name", "subject", func(a *asked) { a.template.Subject.CommonName = "system:node:" }),
		Entry("with another organisation", "subject", func(a *asked) { a.template.Subject.Organization = []string{"system:masters"} }),
		Entry("with one organisation more", "subject", func(a *asked) {
			a.template.Subject.Organization = append(a.template.Subject.Organization, "system:masters")
		}),
		Entry("with another part of the subject", "subject", func(a *asked) { a.template.Subject.OrganizationalUnit = []string{"x"} }),
		Entry("with a name of a server", "names", func(a *asked) { a.template.DNSNames = []string{"kubernetes"} }),
		Entry("with a mail address", "names", func(a *asked) { a.template.EmailAddresses = []string{"a@example.com"} }),
		Entry("of an authority", "names", func(a *asked) {
			a.template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}}
		}),
		Entry("that also serves", "usages", func(a *asked) { a.usages = append(a.usages, certificatesv1.UsageServerAuth) }),
		Entry("that signs nothing", "usages", func(a *asked) { a.usages = a.usages[1:] }),
		Entry("for a user that bootstraps nothing", "requester", func(a *asked) { a.groups = nil }),
		Entry("for the token of another Machine", "requester", func(a *asked) { a.user = "system:bootstrap:other0" }),
		Entry("for a Node that renews its own", "requester", func(a *asked) { a.user, a.groups = a.template.Subject.CommonName, []string{"system:nodes"} }),
	)

	It("is not approved for a Machine that has a Node, or whose name a Node has", func(ctx SpecContext) {
		w := start(ctx)
		machine, node := w.joined(ctx)
		w.refuses(ctx, ofClient(machine).request(ctx), "client", "machine")
		foreign := w.machine(ctx, func(m *machinev1beta1.Machine) { m.Name = node.Name })
		w.refuses(ctx, ofClient(foreign).request(ctx), "client", "node")
	})

	It("is not approved for a Machine that is being deleted, or for one of two", func(ctx SpecContext) {
		w := start(ctx)
		machine := w.machine(ctx, builder.WithFinalizer())
		Expect(plane.Client.Delete(ctx, machine)).To(Succeed())
		w.refuses(ctx, ofClient(machine).request(ctx), "client", "machine")

		x := start(ctx)
		one := x.machine(ctx)
		x.machine(ctx, func(m *machinev1beta1.Machine) {
			m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: one.Name}}
		})
		x.refuses(ctx, ofClient(one).request(ctx), "client", "machine")
	})

	It("is approved for one key of a Node", func(ctx SpecContext) {
		w := start(ctx)
		machine := w.machine(ctx, func(m *machinev1beta1.Machine) { m.Spec.ProviderID = nil })
		first := ofClient(machine)
		csrs := []*certificatesv1.CertificateSigningRequest{first.request(ctx), first.request(ctx), ofClient(machine).request(ctx)}
		Eventually(w.count("refused_total", "client", "machine")).Should(BeNumerically(">=", 3))
		w.provisioned(ctx, machine) // all are checked at once
		Eventually(func(g Gomega) {
			approved := make([]bool, 0, len(csrs))
			for _, csr := range csrs {
				approved = append(approved, len(approval(ctx, csr)(g)) > 0)
			}
			g.Expect(approved[0]).To(Equal(approved[1]), "a key as often as it asks")
			g.Expect(approved[0]).NotTo(Equal(approved[2]), "and no other")
		}).Should(Succeed())
		before := w.count("refused_total", "client", "repeated")()
		again := ofClient(machine).request(ctx)
		Eventually(w.count("refused_total", "client", "repeated")).Should(BeNumerically(">", before))
		Expect(approval(ctx, again)(Default)).To(BeEmpty(), "a replay with another key")
	})

	It("is not approved while many are asked for", func(ctx SpecContext) {
		w := start(ctx)
		machine := w.machine(ctx, func(m *machinev1beta1.Machine) { m.Spec.ProviderID = nil })
		for range 6 {
			ofClient(machine).request(ctx)
		}
		Eventually(w.count("pending")).Should(BeEquivalentTo(6))
		w.provisioned(ctx, machine)
		Eventually(w.count("refused_total", "client", "too_many")).Should(BeNumerically(">=", 6))
		Expect(w.count("approved_total", "client")()).To(BeZero())

		other := w.machine(ctx)
		stranger := ofClient(other)
		stranger.user = "system:bootstrap:other0"
		for range 6 {
			stranger.request(ctx)
		}
		w.approves(ctx, ofClient(other).request(ctx), other) // strangers hinder no one
		for range 100 {
			ofKubeletOfNobody(ctx)
		}
		Eventually(w.count("pending")).Should(BeNumerically(">", 110))
		third := w.machine(ctx)
		before := w.count("refused_total", "client", "too_many")()
		csr := ofClient(third).request(ctx)
		Eventually(w.count("refused_total", "client", "too_many")).Should(BeNumerically(">", before))
		Consistently(approval(ctx, csr)).Should(BeEmpty())
	})
})

func ofKubeletOfNobody(ctx SpecContext) {
	nobody := builder.Machine(builder.Stored(time.Now()))
	ofClient(nobody).request(ctx)
}

// provisioned gives a Machine its instance.
func (w *world) provisioned(ctx SpecContext, machine *machinev1beta1.Machine) {
	GinkgoHelper()
	before := machine.DeepCopy()
	machine.Spec.ProviderID = new(string)
	*machine.Spec.ProviderID = "test:///" + machine.Name
	Expect(plane.Client.Patch(ctx, machine, client.MergeFrom(before))).To(Succeed())
}

func setAddresses(ctx SpecContext, machine *machinev1beta1.Machine, addresses ...corev1.NodeAddress) {
	GinkgoHelper()
	before := machine.DeepCopy()
	machine.Status.Addresses = addresses
	Expect(plane.Client.Status().Patch(ctx, machine, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("A serving certificate", func() {
	// addressed is for all addresses of a Machine.
	addressed := func(machine *machinev1beta1.Machine, node string) asked {
		a := ofServer(node)
		a.template.DNSNames = []string{machine.Name + ".internal", machine.Name + ".example"}
		a.template.IPAddresses = []net.IP{net.ParseIP("10.0.0.1"), net.ParseIP("2001:db8::1")}
		return a
	}

	It("is approved for addresses of the Node's Machine, again and again", func(ctx SpecContext) {
		w := start(ctx)
		machine, node := w.joined(ctx)
		w.approves(ctx, addressed(machine, node.Name).request(ctx), machine)
		fewer := addressed(machine, node.Name)
		fewer.template.DNSNames = nil
		w.approves(ctx, fewer.request(ctx), machine)
	})

	It("waits until its Machine has the addresses", func(ctx SpecContext) {
		w := start(ctx)
		machine, node := w.joined(ctx)
		addresses := machine.Status.Addresses
		setAddresses(ctx, machine)
		csr := addressed(machine, node.Name).request(ctx)
		w.refuses(ctx, csr, "serving", "names")
		setAddresses(ctx, machine, addresses...)
		w.approves(ctx, csr, machine)
	})

	DescribeTable("is not approved", func(ctx SpecContext, reason string, change func(*asked)) {
		w := start(ctx)
		machine, node := w.joined(ctx)
		a := addressed(machine, node.Name)
		change(&a)
		w.refuses(ctx, a.request(ctx), "serving", reason)
	},
		Entry("for an IP address more", "names", func(a *asked) { a.template.IPAddresses = append(a.template.IPAddresses, net.ParseIP("10.96.0.1")) }),
		Entry("for a name more", "names", func(a *asked) { a.template.DNSNames = append(a.template.DNSNames, "kubernetes.default.svc") }),
		Entry("for every name", "names", func(a *asked) { a.template.DNSNames = []string{"*"} }),
		Entry("for nothing", "names", func(a *asked) { a.template.DNSNames, a.template.IPAddresses = nil, nil }),
		Entry("with a mail address", "names", func(a *asked) { a.template.EmailAddresses = []string{"a@example.com"} }),
		Entry("for another Node", "requester", func(a *asked) { a.user = "system:node:other" }),
		Entry("for a user that is no Node", "requester", func(a *asked) { a.groups = []string{"system:bootstrappers"} }),
		Entry("that is a client's", "usages", func(a *asked) { a.usages = append(a.usages, certificatesv1.UsageClientAuth) }),
		Entry("with one organisation more", "subject", func(a *asked) {
			a.template.Subject.Organization = append(a.template.Subject.Organization, "system:masters")
		}),
	)

	DescribeTable("is not approved for a name of a Service, though the Machine has it", func(ctx SpecContext, name string) {
		w := start(ctx)
		machine, node := w.joined(ctx)
		setAddresses(ctx, machine, corev1.NodeAddress{Type: corev1.NodeHostName, Address: name})
		a := ofServer(node.Name)
		a.template.DNSNames = []string{name}
		w.refuses(ctx, a.request(ctx), "serving", "names")
	},
		Entry(nil, "kubernetes"), Entry(nil, "kubernetes.default"), Entry(nil, "hooks.machines.svc"), Entry(nil, "localhost"),
	)

	It("is not approved for a Node of no Machine, or another of its name", func(ctx SpecContext) {
		w := start(ctx)
		lone := w.machine(ctx)
		w.refuses(ctx, addressed(lone, lone.Name).request(ctx), "serving", "machine")
		machine, node := w.joined(ctx)
		Expect(plane.Client.Delete(ctx, node)).To(Succeed())
		again := builder.Node()
		again.Name = node.Name
		Expect(plane.Create(ctx, again)).To(Succeed())
		w.refuses(ctx, addressed(machine, node.Name).request(ctx), "serving", "node")
	})
})

var _ = Describe("The ClusterRole", func() {
	It("lets the manager approve certificates of kubelets only", func(ctx SpecContext) {
		manager := as("system:serviceaccount:openshift-machine-api:machine-api-controllers")
		approve := func(signer string) error {
			a := ofClient(builder.Machine(builder.Stored(time.Now())))
			a.signer = signer
			csr := a.request(ctx)
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
			return manager.SubResource("approval").Update(ctx, csr)
		}
		Expect(approve(certificatesv1.KubeAPIServerClientKubeletSignerName)).To(Succeed())
		Expect(apierrors.IsForbidden(approve(certificatesv1.KubeAPIServerClientSignerName))).To(BeTrue())
	})
})
