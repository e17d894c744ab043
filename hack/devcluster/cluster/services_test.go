package cluster

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

// through connects through the socket, as the API server does.
func through(t *testing.T, c *Cluster) (status int, reader *bufio.Reader, conn net.Conn) {
	t.Helper()
	conn, err := net.Dial("unix", c.layout.services())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte("CONNECT 10.96.0.7:443 HTTP/1.1\r\nHost: 10.96.0.7:443\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	reader = bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil { // the connection continues after the header
		t.Fatal(err)
	}
	return response.StatusCode, reader, conn
}

// echo listens, and returns each line prefixed with word.
func echo(t *testing.T, word string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // the test may have closed it
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n') // an error shows in the response
			_, _ = conn.Write([]byte(word + " of " + line))
			_ = conn.Close()
		}
	}()
	return listener
}

func TestOneServiceMayBeElsewhere(t *testing.T) {
	c := fakeCluster(t, "exit 1")
	if err := os.MkdirAll(c.layout.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	stop, err := c.RouteServices(echo(t, "echo").Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stop() }()
	c.RouteService("10.96.0.8:443", "127.0.0.1:1")
	c.RouteService("10.96.0.7:443", echo(t, "other").Addr().String())
	_, reader, conn := through(t, c)
	if _, err := conn.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := reader.ReadString('\n'); line != "other of hello\n" {
		t.Errorf("got %q (%v)", line, err)
	}
}

func TestServicesAreOneAddressOfThisMachine(t *testing.T) {
	c := fakeCluster(t, "exit 1")
	listener := echo(t, "echo")
	if err := os.MkdirAll(c.layout.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.layout.services(), nil, 0o600); err != nil { // as left by a killed program
		t.Fatal(err)
	}
	stop, err := c.RouteServices(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	status, reader, conn := through(t, c)
	if status != http.StatusOK || reader.Buffered() > 0 {
		t.Fatalf("%d, and %d bytes behind it", status, reader.Buffered())
	}
	if _, err := conn.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := reader.ReadString('\n'); line != "echo of hello\n" {
		t.Errorf("got %q (%v)", line, err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := through(t, c); status != http.StatusBadGateway {
		t.Errorf("nobody listens, and the response is %d", status)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("unix", c.layout.services()); err == nil {
		t.Error("it still listens")
	}
}

func TestRouteServicesNamesASocketThatIsTooLong(t *testing.T) {
	c := &Cluster{layout: layout{dir: "/" + strings.Repeat("d", 120)}}
	if _, err := c.RouteServices("127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "107") {
		t.Errorf("got %v", err)
	}
}
