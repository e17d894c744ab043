package installation_test

import (
	"bytes"
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machine-iac/machine-iac-operator/internal/installation"
)

func TestTheIdentityIsMadeOnceAndKept(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	first, err := installation.Ensure(t.Context(), c, "machines")
	if err != nil {
		t.Fatal(err)
	}
	again, err := installation.Ensure(t.Context(), c, "machines")
	if err != nil {
		t.Fatal(err)
	}
	other, err := installation.Ensure(t.Context(), c, "others")
	if err != nil {
		t.Fatal(err)
	}
	code := first.Sign("purpose", "a", "b")
	if first.UID() != again.UID() || !again.Signed(code, "purpose", "a", "b") {
		t.Error("the second start has another identity")
	}
	if other.UID() == first.UID() || other.Signed(code, "purpose", "a", "b") {
		t.Error("two namespaces share an identity")
	}
}

func TestACodeIsForItsPurposeAndFieldsOnly(t *testing.T) {
	i := installation.New("uid", bytes.Repeat([]byte{1}, 32))
	code := i.Sign("witness", "ab", "c")
	for name, forged := range map[string]bool{
		"another purpose":    i.Signed(code, "grant", "ab", "c"),
		"a shifted boundary": i.Signed(code, "witness", "a", "bc"),
		"fewer fields":       i.Signed(code, "witness", "ab"),
		"an empty code":      i.Signed("", "witness", "ab", "c"),
		"a cut code":         i.Signed(code[:len(code)-2], "witness", "ab", "c"),
		"no code at all":     i.Signed("?", "witness", "ab", "c"),
	} {
		if forged {
			t.Errorf("%s is accepted", name)
		}
	}
	if !i.Signed(code, "witness", "ab", "c") {
		t.Error("its own code is not accepted")
	}
}

func TestAnIdentityThatCannotBeReadIsNotReplaced(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "machines", Name: installation.SecretName}, Data: map[string][]byte{"uid": []byte("x"), "key": []byte("short")},
	}).Build()
	if _, err := installation.Ensure(t.Context(), c, "machines"); err == nil {
		t.Error("got no error for a short key")
	}
}

func TestANamespaceThatIsBeingDeletedGetsAnIdentityForTheProcess(t *testing.T) {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
		refused := apierrors.NewForbidden(corev1.Resource("secrets"), installation.SecretName, nil)
		refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return refused
	}}).Build()
	if _, err := installation.Ensure(t.Context(), c, "machines"); err != nil {
		t.Error(err)
	}
}
