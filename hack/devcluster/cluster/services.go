package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// egressConfiguration has the API server reach Services through a socket in the data folder, since there is no network that they are on.
const egressConfiguration = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
  - name: cluster
    connection:
      proxyProtocol: HTTPConnect
      transport:
        uds:
          udsName: %q
`

// dialTimeout bounds how long a connection to a Service is tried.
const dialTimeout = 5 * time.Second

// writeEgress writes the configuration above.
func writeEgress(l layout) error {
	return writeFile(l.egress(), fmt.Appendf(nil, egressConfiguration, l.services()))
}

// RouteService has what the API server sends to one Service, known by its address in the cluster with its port, arrive elsewhere than RouteServices says.
func (c *Cluster) RouteService(address, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routes == nil {
		c.routes = map[string]string{}
	}
	c.routes[address] = target
}

// route returns where a Service is.
func (c *Cluster) route(address, target string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.routes[address], target)
}

// RouteServices has what the API server sends to any Service arrive at one address of this machine, until stop is called or this program ends.
// Without it, webhooks that are called through a Service fail at once.
func (c *Cluster) RouteServices(target string) (stop func() error, err error) {
	socket := c.layout.services()
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) { // of a program that was killed
		return nil, fmt.Errorf("routing Services: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("routing Services: %w; a socket's path may have 107 characters, this one has %d", err, len(socket))
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tunnel(w, r, c.route(r.Host, target)) }),
		ReadHeaderTimeout: dialTimeout,
	}
	go func() { _ = server.Serve(listener) }() // it ends when it is closed
	return server.Close, nil
}

// tunnel connects who asks with the target, whatever it asks for.
func tunnel(w http.ResponseWriter, r *http.Request, target string) {
	if r.Method != http.MethodConnect {
		http.Error(w, "use CONNECT", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), dialTimeout)
	defer cancel()
	there, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close() //nolint:errcheck // both directions have ended
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer here.Close() //nolint:errcheck // both directions have ended
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	ended := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(there, buffered); ended <- struct{}{} }()
	go func() { _, _ = io.Copy(here, there); ended <- struct{}{} }()
	<-ended
}
