package inspect

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// refusing is an API server that responds to everything with a status.
func refusing(t *testing.T, code int, reason metav1.StatusReason) (live client.Client, host string, asked func() int) {
	t.Helper()
	count := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		count++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "no",
		})
	}))
	t.Cleanup(server.Close)
	return connected(t, server.URL), server.URL, func() int { return count }
}

func connected(t *testing.T, host string) client.Client {
	t.Helper()
	live, err := NewClient(&rest.Config{Host: host, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func TestAnErrorSaysHowToFixIt(t *testing.T) {
	cases := map[string]struct {
		code   int
		reason metav1.StatusReason
		want   string
	}{
		"a right is missing":      {code: http.StatusForbidden, reason: metav1.StatusReasonForbidden, want: "docs/kubectl-machine.md lists the rights"},
		"credentials are wrong":   {code: http.StatusUnauthorized, reason: metav1.StatusReasonUnauthorized, want: "log in again"},
		"there is no Machine API": {code: http.StatusNotFound, reason: metav1.StatusReasonNotFound, want: "'kubectl apply -k install/kubernetes'"},
		"it has failed":           {code: http.StatusInternalServerError, reason: metav1.StatusReasonInternalError, want: "no"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live, _, asked := refusing(t, tc.code, tc.reason)
			err := live.List(t.Context(), &machinev1beta1.MachineList{})
			if err == nil || !strings.Contains(err.Error(), tc.want) || Denied(err) != (tc.reason == metav1.StatusReasonForbidden) {
				t.Errorf("it returns %v (denied: %t); want %q", err, Denied(err), tc.want)
			}
			_, err = state.New(live, state.Options{}).List(t.Context(), "ns")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("listing states returns %v; want %q", err, tc.want)
			}
			if asked() != 2 {
				t.Errorf("it sent %d requests for two calls: a person waits", asked())
			}
		})
	}
	t.Run("an object that is not there is no refusal", func(t *testing.T) {
		live, _, _ := refusing(t, http.StatusNotFound, metav1.StatusReasonNotFound)
		if err := live.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "n"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("it returns %v; want what callers know", err)
		}
	})
}

func TestAnAPIServerThatIsNotThere(t *testing.T) {
	t.Run("nothing listens", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()
		err := connected(t, server.URL).List(t.Context(), &corev1.NodeList{})
		if err == nil || !strings.Contains(err.Error(), server.URL+" does not respond") || !strings.Contains(err.Error(), "check --kubeconfig and --context") {
			t.Errorf("it returns %v", err)
		}
	})
	t.Run("it takes too long", func(t *testing.T) {
		release := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		defer server.Close()
		defer close(release)
		cluster, err := New(&rest.Config{Host: server.URL, Timeout: 50 * time.Millisecond}, "ns", state.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = cluster.Read(t.Context(), Want{}, now)
		if err == nil || !strings.Contains(err.Error(), "--request-timeout gives it more time") {
			t.Errorf("it returns %v", err)
		}
	})
}
