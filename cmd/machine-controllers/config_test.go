package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestTheAPIServerDoesNotCompressForTheManager: to compress and decompress lists of thousands takes
// longer than to send them as they are.
func TestTheAPIServerDoesNotCompressForTheManager(t *testing.T) {
	accepted := make(chan string, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepted <- r.Header.Get("Accept-Encoding")
		http.Error(w, "no", http.StatusNotFound)
	}))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"one": {Server: server.URL, CertificateAuthorityData: authority}},
		Contexts:       map[string]*clientcmdapi.Context{"one": {Cluster: "one"}},
		CurrentContext: "one",
	}, file); err != nil {
		t.Fatal(err)
	}
	config, err := restConfig(options{kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = clients.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	select {
	case got := <-accepted:
		if got != "" {
			t.Errorf("a request accepts %q", got)
		}
	default:
		t.Fatalf("no request came: %v", err)
	}
}
