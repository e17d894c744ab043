package plugin

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestAHostsEngineServesThatHostAlone(t *testing.T) {
	for name, want := range map[string]bool{"the host": true, "another process": false} {
		socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), engineSocket), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			listener := admitting{socket, func(pid int) bool { return want && pid == os.Getpid() }}
			for {
				from, err := listener.Accept()
				if err != nil {
					return // the test is over
				}
				_, _ = from.Write([]byte("x"))
				_ = from.Close()
			}
		}()
		connection, err := net.Dial("unix", socket.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(connection) // it may be cut off
		if got := len(said) > 0; got != want {
			t.Errorf("%s is served: %t", name, got)
		}
		_ = connection.Close()
		_ = socket.Close()
	}
}
