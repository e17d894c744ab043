package config

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// One cluster at a time: the objects have fixed names.
var _ = Describe("Reader", Ordered, func() {
	var (
		reader     *Reader
		now        *clocktesting.FakePassiveClock
		connection *rest.Config
		broken     error
		requests   int
		one, two   string
	)
	endpoints := []v1alpha1.EnvironmentVariable{{Name: "AWS_ENDPOINT_URL_EC2", From: "serviceEndpoint.aws.ec2"}}

	environment := func(ctx context.Context) map[string]string {
		GinkgoHelper()
		variables, _, err := reader.Environment(ctx, endpoints)
		Expect(err).NotTo(HaveOccurred())
		return variables
	}
	later := func() { now.SetTime(now.Now().Add(defaultMaxAge)) }
	newReader := func() *Reader {
		GinkgoHelper()
		api, err := client.New(connection, client.Options{Scheme: plane.Scheme})
		Expect(err).NotTo(HaveOccurred())
		made, err := New(Options{Client: api, Dir: GinkgoT().TempDir(), SystemAuthorities: []string{}, Clock: now, Logger: GinkgoLogr, Installation: "uid"})
		Expect(err).NotTo(HaveOccurred())
		return made
	}

	BeforeAll(func(ctx SpecContext) {
		one, two = authority(GinkgoTB(), "one"), authority(GinkgoTB(), "two")
		connection = rest.CopyConfig(plane.Config)
		connection.Impersonate = rest.ImpersonationConfig{UserName: "manager", Groups: []string{"system:authenticated"}}
		connection.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				requests++
				if broken != nil {
					return nil, broken
				}
				return next.RoundTrip(request)
			})
		})
		Expect(client.IgnoreAlreadyExists(plane.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: trustedCA.Namespace}}))).To(Succeed())
		now = clocktesting.NewFakePassiveClock(time.Now())
		reader = newReader()
	})
	BeforeEach(func() {
		broken = nil
		later()
	})

	It("has nothing to say on a cluster that is not OpenShift", func(ctx SpecContext) {
		Expect(environment(ctx)).To(BeEmpty())
		want := settingsOf(objects{})
		want.Cluster.Installation = "uid"
		Expect(reader.Settings(ctx)).To(Equal(want))
	})

	It("says who may not read", func(ctx SpecContext) {
		Expect(plane.InstallClusterConfig()).To(Succeed())
		_, err := newReader().Settings(ctx)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "got %v", err)
		Expect(err).To(MatchError(ContainSubstring("let the manager get it, as install/controllers/rbac does")))
		Expect(plane.Create(ctx, permissions()...)).To(Succeed())
	})

	It("has nothing to say where OpenShift's objects are missing", func(ctx SpecContext) {
		Eventually(func() error { _, err := newReader().Settings(ctx); return err }).Should(Succeed())
		Expect(environment(ctx)).To(BeEmpty())
	})

	It("reads what the objects say", func(ctx SpecContext) {
		Expect(plane.Create(ctx,
			infrastructure(configv1.PlatformStatus{Type: configv1.AWSPlatformType, AWS: &configv1.AWSPlatformStatus{
				Region: "us-iso-east-1", ServiceEndpoints: []configv1.AWSServiceEndpoint{{Name: "ec2", URL: "https://ec2.example"}},
			}}),
			proxy(configv1.ProxyStatus{HTTPSProxy: "http://user:secret@proxy:3128", NoProxy: ".svc"}, "user-ca-bundle"),
			configMap(trustedCA, trustedCAKey, one), configMap(cloudConfig, cloudCAKey, two),
		)).To(Succeed())

		variables, sensitive, err := reader.Environment(ctx, endpoints)
		Expect(err).NotTo(HaveOccurred())
		file := variables["SSL_CERT_FILE"]
		Expect(read(GinkgoTB(), file)).To(Equal(one + two))
		Expect(variables).To(Equal(map[string]string{
			"HTTPS_PROXY": "http://user:secret@proxy:3128", "NO_PROXY": ".svc", "SSL_CERT_FILE": file, "AWS_ENDPOINT_URL_EC2": "https://ec2.example",
		}))
		Expect(sensitive).To(ContainElement("secret"))
		settings, err := reader.Settings(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(settings.ClusterValues).To(Equal(module.ClusterValues{
			module.ValueClusterID: "demo-x7k2p", module.ValueRegion: "us-iso-east-1", module.ValuePlatform: "AWS",
		}))
		Expect(reader.Cluster(ctx)).To(Equal(&module.Cluster{Installation: "uid", Platform: "AWS", Region: "us-iso-east-1"}))
	})

	It("asks again only when what it has is too old, and takes over what has changed", func(ctx SpecContext) {
		Expect(environment(ctx)).To(HaveKeyWithValue("NO_PROXY", ".svc"))
		current := &configv1.Proxy{}
		Expect(plane.Client.Get(ctx, clusterWide, current)).To(Succeed())
		current.Status.NoProxy = ".svc,.example"
		Expect(plane.Client.Status().Update(ctx, current)).To(Succeed())

		before := requests
		now.SetTime(now.Now().Add(defaultMaxAge - time.Second))
		Expect(environment(ctx)).To(HaveKeyWithValue("NO_PROXY", ".svc"))
		Expect(requests).To(Equal(before))
		now.SetTime(now.Now().Add(time.Second))
		Expect(environment(ctx)).To(HaveKeyWithValue("NO_PROXY", ".svc,.example"))
		Expect(requests).To(Equal(before + 4))
	})

	It("goes by what it has read while it cannot read", func(ctx SpecContext) {
		had := environment(ctx)
		broken = errors.New("the network is down")
		later()
		before := requests
		Expect(environment(ctx)).To(Equal(had))
		Expect(requests).To(BeNumerically(">", before))
		asked := requests
		Expect(environment(ctx)).To(Equal(had))
		Expect(requests).To(Equal(asked), "it does not ask again at once")

		_, err := newReader().Settings(ctx)
		Expect(err).To(MatchError(ContainSubstring("the network is down")), "there is nothing to go by yet")
	})

	It("does without an authority that is taken away", func(ctx SpecContext) {
		Expect(plane.Client.Delete(ctx, configMap(trustedCA, "", ""))).To(Succeed())
		Expect(plane.Client.Delete(ctx, configMap(cloudConfig, "", ""))).To(Succeed())
		Expect(environment(ctx)).NotTo(HaveKey("SSL_CERT_FILE"))
	})
})

var _ = Describe("New", func() {
	It("refuses to work without a client, or a folder", func() {
		_, err := New(Options{Dir: "ca"})
		Expect(err).To(HaveOccurred())
		_, err = New(Options{Client: plane.Client})
		Expect(err).To(HaveOccurred())
	})
})

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// permissions are those that install/kubernetes gives the manager.
func permissions() []client.Object {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{}
	documents := strings.Split(read(GinkgoTB(), "../../../install/controllers/rbac/cluster-role.yaml"), "\n---\n")
	Expect(yaml.UnmarshalStrict([]byte(documents[0]), role)).To(Succeed())
	return []client.Object{role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "manager"}},
	}}
}
