package preload

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var name = types.NamespacedName{Namespace: "ns", Name: "state"}

// holding returns a client whose lists of Secrets have one.
func holding(secret corev1.Secret) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			secrets, ok := list.(*corev1.SecretList)
			if !ok {
				return errors.New("no Secrets are listed")
			}
			secrets.Items = []corev1.Secret{secret}
			return nil
		},
	})
}

func TestManagedFieldsAreNotKept(t *testing.T) {
	held := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "one"}}},
		Data:       map[string][]byte{"tfstate": []byte("state")},
	}
	secrets := New(Options{Client: holding(held), Namespace: name.Namespace, Clock: clock.RealClock{}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- secrets.Start(ctx) }()
	taken := secrets.Take(t.Context(), name)
	switch {
	case taken == nil:
		t.Error("nothing was read ahead")
	case len(taken.ManagedFields) > 0 || string(taken.Data["tfstate"]) != "state":
		t.Errorf("read ahead is %+v, want the data and no managed fields", taken)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
