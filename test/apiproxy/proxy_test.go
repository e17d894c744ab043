package apiproxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
)

// served returns a server behind a proxy, with the number of requests that it executed.
func served(t *testing.T) (*apiproxy.Proxy, *kubernetes.Clientset, *atomic.Int32) {
	t.Helper()
	var carriedOut atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		carriedOut.Add(1)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		if len(body) == 0 {
			body = []byte(`{"kind":"Secret","apiVersion":"v1"}`)
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	opened, err := apiproxy.Open(server.URL,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(opened.Authority())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}
	clients, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: opened.Address()},
		&http.Client{Transport: transport, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return opened, clients, &carriedOut
}

func stateSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
}

// Tests behind the proxy depend on the errors that their clients get.
func TestAFaultIsReturnedAsByAnAPIServer(t *testing.T) {
	for name, tc := range map[string]struct {
		fault   apiproxy.Fault
		want    func(error) bool
		reached int32
	}{
		"409": {
			apiproxy.Fault{At: apiproxy.BeforeRequest, Status: 409}, apierrors.IsConflict, 0,
		},
		"413": {
			apiproxy.Fault{At: apiproxy.BeforeRequest, Status: 413}, apierrors.IsRequestEntityTooLargeError, 0,
		},
		"500": {
			apiproxy.Fault{At: apiproxy.BeforeRequest, Status: 500}, apierrors.IsInternalError, 0,
		},
		"500 after it was carried out": {
			apiproxy.Fault{At: apiproxy.BeforeResponse, Status: 500}, apierrors.IsInternalError, 1,
		},
		"nothing":                          {apiproxy.Fault{At: apiproxy.BeforeRequest}, isEOF, 0},
		"nothing after it was carried out": {apiproxy.Fault{At: apiproxy.BeforeResponse}, isEOF, 1},
		"429 once, which clients ask again after": {
			apiproxy.Fault{At: apiproxy.BeforeRequest, Status: 429, Times: 1},
			func(err error) bool { return err == nil }, 1,
		},
		"slow": {apiproxy.Fault{At: apiproxy.BeforeRequest, Delay: time.Millisecond, Slow: true},
			func(err error) bool { return err == nil }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			opened, clients, carriedOut := served(t)
			tc.fault.Match = apiproxy.WritesState
			on := opened.Inject(tc.fault)
			secrets := clients.CoreV1().Secrets("n")
			_, err := secrets.Create(t.Context(), stateSecret("tfstate-default-m1"), metav1.CreateOptions{})
			if !tc.want(err) || carriedOut.Load() != tc.reached {
				t.Errorf("got %v, carried out %d times; want %d", err, carriedOut.Load(), tc.reached)
			}
			if _, err := secrets.Create(t.Context(), stateSecret("another"), metav1.CreateOptions{}); err != nil {
				t.Errorf("a Secret that is no state: %v", err)
			}
			if _, err := secrets.Get(t.Context(), "tfstate-default-m1", metav1.GetOptions{}); err != nil {
				t.Errorf("reading a state: %v", err)
			}
			if met := on.Lift(); met != 1 {
				t.Errorf("the fault was met %d times", met)
			}
			if _, err := secrets.Update(t.Context(), stateSecret("tfstate-default-m1"),
				metav1.UpdateOptions{}); err != nil {
				t.Errorf("after it was lifted: %v", err)
			}
		})
	}
}

func isEOF(err error) bool { return err != nil && strings.Contains(err.Error(), "EOF") }
