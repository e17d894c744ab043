package servingcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/test/suite"
)

const serverName = "hooks.test.svc"

// house is a namespace with webhook configurations, called like it.
type house struct {
	name       string
	secret     types.NamespacedName
	mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	validating *admissionregistrationv1.ValidatingWebhookConfiguration
}

func newHouse(ctx context.Context) *house {
	GinkgoHelper()
	name := suite.Namespace(ctx, plane)
	h := &house{name: name, secret: types.NamespacedName{Namespace: name, Name: "cert"}}
	called := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://" + serverName + path)}
	}
	never := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Connect},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"none"}, APIVersions: []string{"v1"}, Resources: []string{"none"}},
	}}
	none := ptr.To(admissionregistrationv1.SideEffectClassNone)
	h.mutating = &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			{Name: "a.example.com", ClientConfig: called("/a"), Rules: never, SideEffects: none, AdmissionReviewVersions: []string{"v1"}},
			{Name: "b.example.com", ClientConfig: called("/b"), Rules: never, SideEffects: none, AdmissionReviewVersions: []string{"v1"}},
		},
	}
	h.validating = &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "c.example.com", ClientConfig: called("/c"), Rules: never, SideEffects: none, AdmissionReviewVersions: []string{"v1"}},
		},
	}
	Expect(plane.Client.Create(ctx, h.mutating)).To(Succeed())
	Expect(plane.Client.Create(ctx, h.validating)).To(Succeed())
	return h
}

// keeper returns one of the replicas' keepers, which has not been set to work.
func (h *house) keeper() *Keeper {
	GinkgoHelper()
	k, err := New(Options{Secret: h.secret, DNSNames: []string{serverName, "localhost"}, Configuration: h.name})
	Expect(err).NotTo(HaveOccurred())
	k.settle = time.Second
	return k
}

// replica runs a keeper until the test ends. One replica leads, the others wait for that.
func (h *house) replica() *Keeper {
	GinkgoHelper()
	k := h.keeper()
	mgr, err := manager.New(plane.Config, manager.Options{
		Scheme: plane.Scheme, Logger: GinkgoLogr, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller:     config.Controller{SkipNameValidation: ptr.To(true)},
		LeaderElection: true, LeaderElectionID: "leader", LeaderElectionNamespace: h.name,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(k.SetupWithManager(mgr)).To(Succeed())
	suite.Run(mgr)
	return k
}

// kept returns what the Secret holds.
func (h *house) kept(ctx context.Context) (material, error) {
	secret := &corev1.Secret{}
	err := plane.Client.Get(ctx, h.secret, secret)
	return materialOf(secret), err
}

// trusted returns the authorities that every webhook trusts; it fails while they differ.
func (h *house) trusted(ctx context.Context) ([]byte, error) {
	var bundles [][]byte
	for _, configuration := range []client.Object{h.mutating, h.validating} {
		if err := plane.Client.Get(ctx, client.ObjectKeyFromObject(configuration), configuration); err != nil {
			return nil, err
		}
		for _, hook := range clientConfigs(configuration) {
			bundles = append(bundles, hook.CABundle)
		}
	}
	for _, other := range bundles[1:] {
		if !bytes.Equal(bundles[0], other) {
			return nil, fmt.Errorf("webhooks trust differing authorities:\n%s", bytes.Join(bundles, []byte("---\n")))
		}
	}
	return bundles[0], nil
}

// call returns nil when who trusts what the configurations trust would trust the keeper.
func (h *house) call(ctx context.Context, k *Keeper) error {
	trusted, err := h.trusted(ctx)
	if err != nil {
		return err
	}
	return shake(ctx, k, trusted)
}

// shake returns nil when who trusts some authorities trusts the keeper.
func shake(ctx context.Context, k *Keeper, trusted []byte) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusted)
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	go func() { _ = tls.Server(there, &tls.Config{GetCertificate: k.GetCertificate}).HandshakeContext(ctx) }()
	return tls.Client(here, &tls.Config{RootCAs: pool, ServerName: serverName}).HandshakeContext(ctx)
}

var _ = Describe("A keeper", func() {
	var h *house

	BeforeEach(func(ctx context.Context) { h = newHouse(ctx) })

	It("makes a certificate, and has the API server trust it, without anything to begin with", func(ctx context.Context) {
		k := h.replica()
		Eventually(h.call).WithArguments(ctx, k).Should(Succeed())
		secret := &corev1.Secret{}
		Expect(plane.Client.Get(ctx, h.secret, secret)).To(Succeed())
		Expect(secret.Type).To(Equal(corev1.SecretTypeTLS))
		trusted, err := h.trusted(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(certificatesIn(trusted)).To(HaveLen(1))
		Expect(h.mutating.Webhooks[1].ClientConfig.URL).To(HaveValue(HaveSuffix("/b")), "only whom to trust is written")
	})

	It("shares it with the other replicas, of which none needs to lead", func(ctx context.Context) {
		replicas := []*Keeper{h.replica(), h.replica(), h.replica()}
		for _, k := range replicas {
			Eventually(h.call).WithArguments(ctx, k).Should(Succeed())
		}
		kept, err := h.kept(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, k := range replicas {
			Expect(shake(ctx, k, kept.authority)).To(Succeed())
			Expect(k.served.Load().authority).To(Equal(kept.authority))
		}
	})

	It("takes a new certificate of the same authority into use at once", func(ctx context.Context) {
		k := h.replica()
		Eventually(h.call).WithArguments(ctx, k).Should(Succeed())
		before, err := h.kept(ctx)
		Expect(err).NotTo(HaveOccurred())
		secret := &corev1.Secret{}
		Expect(plane.Client.Get(ctx, h.secret, secret)).To(Succeed())
		delete(secret.Data, corev1.TLSCertKey)
		secret.Data[corev1.TLSCertKey] = []byte("lost")
		Expect(plane.Client.Update(ctx, secret)).To(Succeed())
		Eventually(func(g Gomega) {
			kept, err := h.kept(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kept.authority).To(Equal(before.authority))
			g.Expect(kept.certificate).NotTo(Or(Equal(before.certificate), BeEquivalentTo("lost")))
			pair, err := kept.pair()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(k.served.Load().pair.Leaf.Equal(pair.Leaf)).To(BeTrue())
		}).Should(Succeed())
		Expect(h.call(ctx, k)).To(Succeed())
	})

	It("goes on serving when the Secret is deleted: a new authority is trusted before it is served", func(ctx context.Context) {
		replicas := []*Keeper{h.replica(), h.replica()}
		for _, k := range replicas {
			Eventually(h.call).WithArguments(ctx, k).Should(Succeed())
		}
		before, err := h.trusted(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(plane.Client.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.secret.Namespace, Name: h.secret.Name}})).To(Succeed())
		Eventually(func(g Gomega) {
			trusted, err := h.trusted(ctx)
			if err == nil { // else one configuration is written and the other is not
				for _, k := range replicas {
					failed := shake(ctx, k, trusted)
					now, err := h.trusted(ctx)
					if failed != nil && err == nil && bytes.Equal(now, trusted) { // else the new authority came in between
						StopTrying("a webhook does not respond").Wrap(failed).Now()
					}
					g.Expect(failed).NotTo(HaveOccurred())
				}
			}
			g.Expect(err).NotTo(HaveOccurred())
			for _, k := range replicas {
				g.Expect(shake(ctx, k, before)).To(MatchError(ContainSubstring("unknown authority")), "the old authority's certificate is still served")
			}
		}).WithPolling(5 * time.Millisecond).Should(Succeed())
		trusted, err := h.trusted(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(certificatesIn(trusted)).To(HaveLen(2))
	})

	It("writes the authority again when a configuration is replaced, and waits for one that is not there", func(ctx context.Context) {
		Expect(plane.Client.Delete(ctx, h.mutating.DeepCopy())).To(Succeed())
		k := h.replica()
		Eventually(func(g Gomega) {
			g.Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(h.validating), h.validating)).To(Succeed())
			g.Expect(shake(ctx, k, h.validating.Webhooks[0].ClientConfig.CABundle)).To(Succeed())
		}).Should(Succeed())
		h.mutating.ObjectMeta = metav1.ObjectMeta{Name: h.name}
		Expect(plane.Client.Create(ctx, h.mutating)).To(Succeed())
		Eventually(h.call).WithArguments(ctx, k).Should(Succeed())
		h.validating.Webhooks[0].ClientConfig.CABundle = nil
		Expect(plane.Client.Update(ctx, h.validating)).To(Succeed())
		Eventually(h.call).WithArguments(ctx, k).Should(Succeed())
	})

	It("renews in time, and lets an old authority go", func(ctx context.Context) {
		k := h.keeper()
		passing := testclock.NewFakePassiveClock(start)
		k.options.Clock, k.reader, k.writer = passing, plane.Client, plane.Client
		reconcileAt := func(at time.Duration) time.Duration {
			passing.SetTime(start.Add(at))
			result, err := k.Reconcile(ctx, reconcile.Request{})
			Expect(err).NotTo(HaveOccurred())
			return result.RequeueAfter
		}
		serial := func() *x509.Certificate { return k.served.Load().pair.Leaf }
		authorities := func() int {
			trusted, err := h.trusted(ctx)
			Expect(err).NotTo(HaveOccurred())
			return len(certificatesIn(trusted))
		}
		Expect(reconcileAt(0)).To(Equal(maxRequeueAfter))
		first := serial()
		Expect(reconcileAt(60*day - time.Hour)).To(Equal(time.Hour))
		Expect(serial().Equal(first)).To(BeTrue())
		reconcileAt(61 * day)
		Expect(serial().Equal(first)).To(BeFalse())
		Expect(authorities()).To(Equal(1))

		old, end := serial(), authorityValidity-authorityAhead+day
		Expect(reconcileAt(end)).To(Equal(Overlap), "the certificate in use has run out, so that the next one is not waited with")
		Expect(serial().Equal(old)).To(BeFalse())
		Expect(authorities()).To(Equal(2))
	})
})

var _ = Describe("A keeper's new authority", func() {
	It("is served when API servers have had time to see it, and trusted alone after the overlap", func(ctx context.Context) {
		h := newHouse(ctx)
		k := h.keeper()
		passing := testclock.NewFakePassiveClock(start)
		k.options.Clock, k.reader, k.writer, k.settle = passing, plane.Client, plane.Client, 5*time.Second
		reconcileAt := func(at time.Duration) time.Duration {
			passing.SetTime(start.Add(at))
			result, err := k.Reconcile(ctx, reconcile.Request{})
			Expect(err).NotTo(HaveOccurred())
			return result.RequeueAfter
		}
		reconcileAt(0)
		first := k.served.Load().authority
		Expect(plane.Client.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.secret.Namespace, Name: h.secret.Name}})).To(Succeed())
		Expect(reconcileAt(day)).To(Equal(5 * time.Second))
		Expect(k.served.Load().authority).To(Equal(first))
		Expect(reconcileAt(day + 3*time.Second)).To(Equal(2 * time.Second))
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(h.validating), h.validating)).To(Succeed())
		h.validating.Webhooks[0].ClientConfig.CABundle = bytes.TrimSpace(first)
		Expect(plane.Client.Update(ctx, h.validating)).To(Succeed())
		Expect(reconcileAt(day+4*time.Second)).To(Equal(5*time.Second), "it was trusted a moment ago only")
		Expect(k.served.Load().authority).To(Equal(first))
		Expect(reconcileAt(day + 9*time.Second)).To(Equal(Overlap - 9*time.Second))
		Expect(k.served.Load().authority).NotTo(Equal(first))
		trusted, err := h.trusted(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(certificatesIn(trusted)).To(HaveLen(2))
		Expect(reconcileAt(day + Overlap)).To(Equal(maxRequeueAfter))
		trusted, err = h.trusted(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(trusted).To(Equal(join(k.served.Load().authority)))
	})

	It("is not served while no configuration can have it", func(ctx context.Context) {
		h := newHouse(ctx)
		k := h.keeper()
		refusing := &refusingWriter{Client: plane.Client}
		k.reader, k.writer = plane.Client, refusing
		_, err := k.Reconcile(ctx, reconcile.Request{})
		Expect(err).To(MatchError(And(ContainSubstring("writing the authority into"), ContainSubstring(h.name), ContainSubstring("not yours"))))
		_, err = k.GetCertificate(nil)
		Expect(err).To(MatchError(ContainSubstring("no certificate yet")))
		refusing.allowed = true
		_, err = k.Reconcile(ctx, reconcile.Request{})
		Expect(err).NotTo(HaveOccurred())
		Expect(h.call(ctx, k)).To(Succeed())
	})
})

// refusingWriter refuses patches until they are allowed.
type refusingWriter struct {
	client.Client
	allowed bool
}

func (w *refusingWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if !w.allowed {
		return apierrors.NewForbidden(admissionregistrationv1.Resource("webhooks"), object.GetName(), fmt.Errorf("not yours"))
	}
	return w.Client.Patch(ctx, object, patch, options...)
}

var _ = Describe("New", func() {
	It("names the options that are missing", func() {
		_, err := New(Options{})
		Expect(err).To(MatchError(ContainSubstring(strings.Join([]string{"Secret", "DNSNames and Configuration"}, ", "))))
	})
})
