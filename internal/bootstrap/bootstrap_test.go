package bootstrap_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/machine-iac/machine-iac-operator/internal/bootstrap"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

const group = "system:bootstrappers:machines"

var plane *controlplane.ControlPlane

func TestBootstrap(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Bootstrap tokens")
}

var _ = BeforeSuite(func() {
	plane = suite.Start(controlplane.Default, func(e *envtest.Environment) {
		e.ControlPlane.GetAPIServer().Configure().Append("enable-bootstrap-token-auth", "true")
	})
})

// filled returns what becomes of user data in a Secret with annotations.
func filled(tokens *bootstrap.Tokens, userData string, annotations map[string]string) (text, token string, err error) {
	machine := builder.Machine(builder.Stored(time.Now()))
	machine.Name, machine.UID = "worker-0", "uid"
	secret := builder.Secret()
	secret.Annotations = annotations
	raw, token, err := tokens.Fill(machine, secret, []byte(userData))
	return string(raw), token, err
}

func TestPlaceholdersAreFilledInWhereTheSecretAsksForIt(t *testing.T) {
	asks := map[string]string{bootstrap.Annotation: "true"}
	own := installation.Generate()
	enabled := bootstrap.New(bootstrap.Options{Installation: own, Groups: []string{group}})
	disabled := bootstrap.New(bootstrap.Options{Installation: own})
	_, token, err := filled(enabled, "<<BOOTSTRAP_TOKEN>>", asks)
	if err != nil || !regexp.MustCompile(`\A[a-z0-9]{6}\.[a-z0-9]{16}\z`).MatchString(token) {
		t.Fatalf("the token is %q, %v", token, err)
	}
	for name, tc := range map[string]struct {
		tokens         *bootstrap.Tokens
		userData, want string
		annotations    map[string]string
		token, fails   bool
	}{
		"both":            {enabled, "join <<BOOTSTRAP_TOKEN>> as <<MACHINE_NAME>>, <<MACHINE_NAME>>", "join " + token + " as worker-0, worker-0", asks, true, false},
		"URL-encoded":     {enabled, "data:,%3C%3CBOOTSTRAP_TOKEN%3E%3E%3C%3CMACHINE_NAME%3E%3E", "data:," + token + "worker-0", asks, true, false},
		"the name alone":  {disabled, "<<MACHINE_NAME>>", "worker-0", asks, false, false},
		"nothing":         {disabled, "#cloud-config", "#cloud-config", asks, false, false},
		"no annotation":   {enabled, "<<BOOTSTRAP_TOKEN>>", "<<BOOTSTRAP_TOKEN>>", nil, false, false},
		"another value":   {enabled, "<<BOOTSTRAP_TOKEN>>", "<<BOOTSTRAP_TOKEN>>", map[string]string{bootstrap.Annotation: "false"}, false, false},
		"no tokens":       {disabled, "<<BOOTSTRAP_TOKEN>>", "<<BOOTSTRAP_TOKEN>>", asks, false, true},
		"without manager": {nil, "<<BOOTSTRAP_TOKEN>>", "<<BOOTSTRAP_TOKEN>>", asks, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, contained, err := filled(tc.tokens, tc.userData, tc.annotations)
			if got != tc.want || (contained == token) != tc.token || (err != nil) != tc.fails {
				t.Errorf("got %q with the token %q, %v; want %q, a token: %t, an error: %t", got, contained, err, tc.want, tc.token, tc.fails)
			}
		})
	}
}

func TestATokenIsThatOfOneMachineAndOneInstallation(t *testing.T) {
	own := installation.Generate()
	user := func(of *installation.Installation, uid types.UID) string {
		return bootstrap.New(bootstrap.Options{Installation: of}).User(withUID(uid))
	}
	first := user(own, "a")
	if user(own, "a") != first {
		t.Error("the token of a Machine is another each time")
	}
	if user(own, "b") == first || user(installation.Generate(), "a") == first {
		t.Error("two Machines, or two installations, share a token")
	}
	restored := func(by *installation.Installation) *machinev1beta1.Machine {
		machine := withUID("b")
		witness := record.Witness{IdentityUID: "a"}.SignedFor(machine, by)
		machine.Annotations = map[string]string{record.WitnessAnnotation: witness}
		return machine
	}
	tokens := bootstrap.New(bootstrap.Options{Installation: own})
	if tokens.User(restored(own)) != first {
		t.Error("a restored Machine does not have the token that its instance was created with")
	}
	if tokens.User(restored(installation.Generate())) == first {
		t.Error("a Machine gets the token of another by a forged witness")
	}
}

func withUID(uid types.UID) *machinev1beta1.Machine {
	machine := builder.Machine()
	machine.UID = uid
	return machine
}

var _ = Describe("A bootstrap token", func() {
	machine := types.NamespacedName{Namespace: "openshift-machine-api", Name: "worker-0"}
	own := installation.Generate()
	tokens := func(now time.Time, writer client.Writer) *bootstrap.Tokens {
		return bootstrap.New(bootstrap.Options{Client: writer, Installation: own, Groups: []string{group},
			Lifetime: time.Hour, Clock: clocktesting.NewFakePassiveClock(now)})
	}
	bearer := func(ctx context.Context) func() authenticationv1.UserInfo {
		return func() authenticationv1.UserInfo { return userOf(ctx, tokens(time.Now(), nil)) }
	}

	It("authenticates until it expires or is removed, and is extended by the next create", func(ctx SpecContext) {
		Expect(bearer(ctx)().Username).To(BeEmpty())
		now := tokens(time.Now(), plane.Client)
		Expect(now.Publish(ctx, machine, "uid")).To(Succeed())
		Eventually(bearer(ctx)).Should(And(HaveField("Username", now.User(withUID("uid"))),
			HaveField("Groups", ConsistOf("system:bootstrappers", group, "system:authenticated"))))
		secret := &corev1.Secret{}
		name := "bootstrap-token-" + strings.TrimPrefix(now.User(withUID("uid")), "system:bootstrap:")
		Expect(plane.Client.Get(ctx, types.NamespacedName{Namespace: "kube-system", Name: name}, secret)).To(Succeed())
		Expect(string(secret.Data["description"])).To(ContainSubstring(machine.String()))
		Expect(tokens(time.Now().Add(-2*time.Hour), plane.Client).Publish(ctx, machine, "uid")).To(Succeed())
		Eventually(bearer(ctx)).WithTimeout(time.Minute).Should(HaveField("Username", BeEmpty()), "expired")
		Expect(now.Publish(ctx, machine, "uid")).To(Succeed())
		Eventually(bearer(ctx)).WithTimeout(time.Minute).Should(HaveField("Username", now.User(withUID("uid"))))
		Expect(now.Remove(ctx, "uid")).To(Succeed())
		Expect(now.Remove(ctx, "uid")).To(Succeed(), "there is none")
		Eventually(bearer(ctx)).WithTimeout(time.Minute).Should(HaveField("Username", BeEmpty()), "removed")
	})

	It("is all that the manager may write in kube-system", func(ctx SpecContext) {
		config := rest.CopyConfig(plane.Config)
		config.Impersonate.UserName = "system:serviceaccount:openshift-machine-api:machine-api-controllers"
		manager, err := client.New(config, client.Options{Scheme: plane.Scheme})
		Expect(err).NotTo(HaveOccurred())
		Expect(tokens(time.Now(), manager).Publish(ctx, machine, "uid")).To(MatchError(
			ContainSubstring("apply install/bootstrap-tokens")))
		apply(ctx, "role.yaml", "policy.yaml")
		foreign := builder.Secret()
		foreign.Namespace = "kube-system"
		Expect(plane.Create(ctx, foreign)).To(Succeed())
		account := builder.Secret()
		account.Namespace, account.Data, account.Type = "kube-system", nil, corev1.SecretTypeServiceAccountToken
		account.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
		Expect(plane.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "default"}})).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsInvalid(manager.Create(ctx, account.DeepCopy(), client.DryRunAll))
		}).Should(BeTrue(), "the policy is in force")
		Expect(tokens(time.Now(), manager).Publish(ctx, machine, "uid")).To(Succeed())
		Expect(tokens(time.Now(), manager).Remove(ctx, "uid")).To(Succeed())
		Expect(apierrors.IsInvalid(manager.Delete(ctx, foreign))).To(BeTrue())
		for _, read := range []error{
			manager.Get(ctx, client.ObjectKeyFromObject(foreign), foreign),
			manager.List(ctx, &corev1.SecretList{}, client.InNamespace("kube-system")),
			manager.Update(ctx, foreign), manager.DeleteAllOf(ctx, foreign, client.InNamespace("kube-system")),
		} {
			Expect(apierrors.IsForbidden(read)).To(BeTrue(), "%v", read)
		}
	})
})

// userOf returns who the API server takes the bearer of the token for; nobody if it is not valid.
func userOf(ctx context.Context, tokens *bootstrap.Tokens) authenticationv1.UserInfo {
	GinkgoHelper()
	_, token, err := filled(tokens, "<<BOOTSTRAP_TOKEN>>", map[string]string{bootstrap.Annotation: "true"})
	Expect(err).NotTo(HaveOccurred())
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	Expect(plane.Client.Create(ctx, review)).To(Succeed())
	return review.Status.User
}

// apply creates the objects of install/bootstrap-tokens.
func apply(ctx context.Context, files ...string) {
	GinkgoHelper()
	for _, file := range files {
		content, err := os.Open(filepath.Join("..", "..", "install", "bootstrap-tokens", file))
		Expect(err).NotTo(HaveOccurred())
		documents := utilyaml.NewYAMLOrJSONDecoder(content, 4096)
		for object := new(unstructured.Unstructured); documents.Decode(object) == nil; object = new(unstructured.Unstructured) {
			Expect(plane.Client.Create(ctx, object)).To(Succeed())
		}
		Expect(content.Close()).To(Succeed())
	}
}
