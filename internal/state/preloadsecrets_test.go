package state

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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

// holding returns a client that lists one Secret.
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
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name,
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "one"}}},
		Data: map[string][]byte{"tfstate": []byte("state")},
	}
	secrets := newPreload(preloadOptions{Client: holding(held), Namespace: name.Namespace, Clock: clock.RealClock{}})
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

// crowd returns a client that lists many Secrets, and the number of pages read.
func crowd(size int) (client.Client, *int) {
	pages := 0
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			asked := (&client.ListOptions{}).ApplyOptions(options)
			secrets, ok := list.(*corev1.SecretList)
			if !ok {
				return errors.New("no Secrets are listed")
			}
			for i := range asked.Limit {
				secrets.Items = append(secrets.Items, corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace,
						Name: fmt.Sprintf("state-%d", pages*int(asked.Limit)+int(i))},
					Data: map[string][]byte{"tfstate": make([]byte, size)},
				})
			}
			if pages++; pages < 100 {
				secrets.Continue = "more"
			}
			return nil
		},
	}), &pages
}

// started returns preloaded Secrets.
func started(t testing.TB, client client.Client) *preloadedSecrets {
	t.Helper()
	secrets := newPreload(preloadOptions{Client: client, Namespace: name.Namespace, Clock: clock.RealClock{}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- secrets.Start(ctx) }()
	<-secrets.done
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return secrets
}

// Ten thousand heads of 256 KiB are 2.5 GiB. What fits is kept, and nothing else is read.
func TestWhatIsKeptIsBounded(t *testing.T) {
	heap := func() int {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc) //nolint:gosec // far below
	}
	const size = 256 << 10
	before := heap()
	many, pages := crowd(size)
	secrets := started(t, many)
	if grown := heap() - before; grown > maxBytes+16<<20 {
		t.Errorf("%d MiB are kept, more than %d", grown>>20, maxBytes>>20)
	}
	if fit := maxBytes / (size + 2<<10); len(secrets.read) < fit-1 || len(secrets.read) > fit+4 ||
		*pages != fit/page+1 {
		t.Errorf("%d are kept of %d pages, want about %d", len(secrets.read), *pages, fit)
	}
	if first := secrets.Take(t.Context(),
		types.NamespacedName{Namespace: name.Namespace, Name: "state-0"}); first == nil {
		t.Error("the first is not kept")
	}
	if last := secrets.Take(t.Context(),
		types.NamespacedName{Namespace: name.Namespace, Name: "state-9999"}); last != nil {
		t.Error("the last is kept")
	}
}

func TestAllAreKeptThatFit(t *testing.T) {
	many, pages := crowd(4 << 10)
	if secrets := started(t, many); len(secrets.read) != 10_000 || *pages != 100 {
		t.Errorf("%d are kept of %d pages, want 10000 of 100", len(secrets.read), *pages)
	}
}

// BenchmarkStart measures time and memory for ten thousand heads, without the API server.
func BenchmarkStart(b *testing.B) {
	for _, size := range []int{4 << 10, 32 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("heads of %d KiB", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				many, _ := crowd(size)
				secrets := newPreload(preloadOptions{Client: many, Namespace: name.Namespace, Clock: clock.RealClock{}})
				_ = secrets.list(b.Context()) // the error says that there is no room for all
				b.ReportMetric(float64(len(secrets.read)), "kept")
				b.ReportMetric(float64(secrets.bytes)/(1<<20), "MiB-kept")
			}
		})
	}
}
