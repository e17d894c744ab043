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

// egressConfiguration makes the API server reach Services through a socket in the data folder, as there is no Service
// network.
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

// dialTimeout bounds a connection attempt to a Service.
const dialTimeout = 5 * time.Second

func writeEgress(l layout) error {
	return writeFile(l.egress(), fmt.Appendf(nil, egressConfiguration, l.services()))
}

// RouteService overrides RouteServices for one Service, given by its address and port in the cluster.
func (c *Cluster) RouteService(address, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routes == nil {
		c.routes = map[string]string{}
	}
	c.routes[address] = target
}

// route returns the target of a Service.
func (c *Cluster) route(address, target string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.routes[address], target)
}

// RouteServices routes the API server's requests to any Service to one address of this machine, until stop is called or
// this program ends. Without it, webhooks that are called through a Service fail at once.
func (c *Cluster) RouteServices(target string) (stop func() error, err error) {
	socket := c.layout.services()
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) { // left by a killed program
		return nil, fmt.Errorf("routing Services: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("routing Services: %w; a socket's path may have 107 characters, this one has %d", err,
			len(socket))
	}
	server := &http.Server{
		Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) { tunnel(w, r, c.route(r.Host, target)) }),
		ReadHeaderTimeout: dialTimeout,
	}
	go func() { _ = server.Serve(listener) }() // ends when closed
	return server.Close, nil
}

// tunnel connects the client with the target, whatever it requests.
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
