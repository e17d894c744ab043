package pipeline

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

// apiServer refuses all requests, and keeps the last for each resource.
type apiServer struct {
	lock  sync.Mutex
	asked map[string]*http.Request
}

func serveRequests(t *testing.T) (*apiServer, *rest.Config) {
	t.Helper()
	s := &apiServer{asked: map[string]*http.Request{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.asked[strings.TrimPrefix(r.URL.Path, "/api/v1/")] = r
		w.WriteHeader(http.StatusForbidden)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return s, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// requestFor waits for a request for a resource, and returns it.
func (s *apiServer) requestFor(t *testing.T, resource string) *http.Request {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		s.lock.Lock()
		r := s.asked[resource]
		s.lock.Unlock()
		if r != nil {
			return r
		}
	}
	t.Fatalf("%s are not asked for", resource)
	return nil
}

// TestNodesHaveAConnectionOfTheirOwn: one of HTTP/2 is read whenever something comes, so that each heartbeat wakes its reader.
func TestNodesHaveAConnectionOfTheirOwn(t *testing.T) {
	server, config := serveRequests(t)
	newInformer, err := NewInformer(config)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pods := toolscache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.Everything())
	go newInformer(pods, &corev1.Pod{}, 0, nil).Run(t.Context().Done())
	go newInformer(nil, &corev1.Node{}, 0, nil).Run(t.Context().Done())

	if got := server.requestFor(t, "pods").Proto; got != "HTTP/2.0" {
		t.Errorf("Pods are asked for by %s", got)
	}
	asked := server.requestFor(t, "nodes")
	if asked.Proto != "HTTP/1.1" {
		t.Errorf("Nodes are asked for by %s", asked.Proto)
	}
	if accepted := asked.Header.Get("Accept"); !strings.HasPrefix(accepted, "application/vnd.kubernetes.protobuf,") {
		t.Errorf("of Nodes %q is accepted", accepted)
	}
	if len(config.NextProtos) > 0 || config.Dial != nil || config.ContentType != "" {
		t.Errorf("the configuration that others share is changed: %v", config)
	}
}

// TestADeadConnectionOfNodesIsFound by TCP, within 30 s.
func TestADeadConnectionOfNodesIsFound(t *testing.T) {
	server, config := serveRequests(t)
	newInformer, err := NewInformer(config)
	if err != nil {
		t.Fatal(err)
	}
	go newInformer(nil, &corev1.Node{}, 0, nil).Run(t.Context().Done())

	socket := socketOf(t, server.requestFor(t, "nodes").RemoteAddr)
	value := func(level, option int) int {
		t.Helper()
		v, err := syscall.GetsockoptInt(socket, level, option)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if value(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) == 0 {
		t.Error("there are no probes")
	}
	idle, interval, count := value(syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE), value(syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL), value(syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT)
	if found := idle + interval*count; found > 30 {
		t.Errorf("it is found after %d s", found)
	}
}

// socketOf returns the file descriptor of the socket of this process that has an address.
func socketOf(t *testing.T, address string) int {
	t.Helper()
	port := netip.MustParseAddrPort(address).Port()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		fd, err := strconv.Atoi(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if local, err := syscall.Getsockname(fd); err == nil {
			if v4, ok := local.(*syscall.SockaddrInet4); ok && v4.Port == int(port) {
				return fd
			}
		}
	}
	t.Fatalf("no socket has the address %s", address)
	return 0
}
