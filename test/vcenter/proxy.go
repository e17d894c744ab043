package vcenter

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"time"
)

const dialTimeout = 10 * time.Second

// forwardTo starts a proxy that forwards all connections to one address, whatever their target.
func forwardTo(address string) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != Name+":443" {
			http.Error(w, "only the vCenter is here", http.StatusForbidden)
			return
		}
		target, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(r.Context(), "tcp", address)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = target.Close()
			return
		}
		// The client sends nothing before this response.
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go relay(client, target)
		go relay(target, client)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // killed clients
	server.Start()
	return server
}

func relay(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
}
