package hostile

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/tofu"
	"github.com/machine-iac/machine-iac-operator/test/long"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// sockets returns the paths of listening sockets in a folder, as the kernel lists them to every process.
func sockets(dir string) ([]string, error) {
	list, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	defer list.Close()
	var found []string
	for lines := bufio.NewScanner(list); lines.Scan(); {
		const flags, path, listens = 3, 7, "00010000"
		fields := strings.Fields(lines.Text())
		if len(fields) > path && fields[flags] == listens && strings.HasPrefix(fields[path], dir) {
			found = append(found, fields[path])
		}
	}
	return found, nil
}

// trySockets connects to all sockets in a folder, and succeeds if one serves any client, in plain text or by TLS with a
// self-made key.
func trySockets(dir string) error {
	found, err := sockets(dir)
	if err != nil {
		return err
	}
	if len(found) < 2 {
		return fmt.Errorf("only the sockets %v were found", found)
	}
	secured, err := ownTLS()
	if err != nil {
		return err
	}
	for _, path := range found {
		for _, secure := range []*tls.Config{nil, secured} {
			if err := served(path, secure); err == nil {
				return nil
			}
		}
	}
	return fmt.Errorf("permission denied: none of %d sockets serves", len(found))
}

func ownTLS() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{ //nolint:gosec // whoever it is
		InsecureSkipVerify: true, NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
	}, nil
}

// served returns an error unless a plugin responds at a socket: it speaks HTTP/2, and sends its settings.
func served(path string, secure *tls.Config) error {
	connection, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if secure != nil {
		connection = tls.Client(connection, secure)
	}
	const preface, settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	if _, err := connection.Write([]byte(preface + settings)); err != nil {
		return err
	}
	_, err = io.ReadFull(connection, make([]byte, len(settings)))
	return err
}

// victimMain creates an object in an infrastructure that accepts requests and does not respond.
const victimMain = `
terraform {
  required_providers {
    kubectl = {
      source = "gavinbunney/kubectl"
    }
  }
}

provider "kubectl" {
  host             = %q
  load_config_file = false
}

resource "kubectl_manifest" "this" {
  yaml_body = yamlencode({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "x", namespace = "default" } })
}
`

const victimLock = "provider \"registry.opentofu.org/gavinbunney/kubectl\" {\n  version = \"1.19.0\"\n}\n"

// silence is that infrastructure; reached counts the requests.
func silence(t *testing.T) (address string, reached *atomic.Int64) {
	t.Helper()
	reached = &atomic.Int64{}
	lifted := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		select {
		case <-lifted:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(lifted)
		server.Close()
	})
	return server.URL, reached
}

// victim starts a run that creates something, and returns when its provider is busy. The run is interrupted when the
// test ends.
func victim(t *testing.T, engine *tofu.Engine, id string) {
	t.Helper()
	address, reached := silence(t)
	opened := runOf(t, engine, id, fmt.Sprintf(victimMain, address), victimLock, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := opened.Apply(ctx)
		ended <- err
	}()
	t.Cleanup(func() {
		interrupt()
		if <-ended == nil {
			t.Error("an infrastructure that does not respond has the object")
		}
	})
	for range 600 {
		if reached.Load() > 0 {
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the victim has ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("the victim's provider does not make anything")
}

func TestProvidersReachNoOtherRunsProviders(t *testing.T) {
	long.Test(t)
	for name, warm := range map[string]int{"providers of engines": 0, "warm providers": 3} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, confined *sandbox.Sandbox) {
				engine, work := newTofuOf(t, confined, warm, mirrorWithVictim(t))
				if warm > 0 { // a warm provider without a run
					address, _ := silence(t)
					idle := runOf(t, engine, "idle", fmt.Sprintf(victimMain,
						address), victimLock, func(spec *tofu.RunSpec) {
						spec.Environment = map[string]string{"OTHER": "credentials"}
					})
					if _, err := idle.Plan(t.Context(), tofu.PlanOptions{}); err != nil {
						t.Fatal(err)
					}
					if err := idle.Close(); err != nil {
						t.Fatal(err)
					}
				}
				victim(t, engine, "victim")
				if warm == 0 {
					victim(t, engine, "another")
				}
				collected := newCollector(t)
				attacks := []attack{{"the providers of other runs", "sockets", work}}
				hostile := run(t, engine, "hostile", hostileThing,
					func(spec *tofu.RunSpec) { spec.Environment = collected.environment(t, attacks) })
				if _, err := hostile.Plan(t.Context(), tofu.PlanOptions{}); err == nil {
					t.Error("a provider that serves nothing is planned with")
				}
				collected.check(t, attacks, confined != nil)
			})
		})
	}
}

// mirrorWithVictim returns a mirror with the hostile provider and a working one.
func mirrorWithVictim(t *testing.T) string {
	t.Helper()
	mirror, provider := hostileMirror(t), filepath.Join("registry.opentofu.org", "gavinbunney", "kubectl", "1.19.0")
	if err := os.MkdirAll(filepath.Join(mirror, provider), 0o700); err != nil {
		t.Fatal(err)
	}
	platform := filepath.Join(provider, runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.Symlink(filepath.Join(filepath.Dir(tool(t, "tofu")), "mirror", platform),
		filepath.Join(mirror, platform)); err != nil {
		t.Fatal(err)
	}
	return mirror
}

// TestADoorLetsInItsRunAlone connects to a provider from its own run, from another run, and from its own run after that
// returned the provider.
func TestADoorLetsInItsRunAlone(t *testing.T) {
	confined, work := newSandbox(t), shortdir.New(t)
	plugins, err := filepath.Glob(
		filepath.Join(filepath.Dir(tool(t, "tofu")), "mirror", "registry.opentofu.org", "gavinbunney", "kubectl", "*",
			"*", "terraform-provider-kubectl*"))
	if err != nil || len(plugins) != 1 {
		t.Fatalf("want one provider, got %v, %v; run 'make tools'", plugins, err)
	}
	pool := provider.NewPool(filepath.Join(work, "p"), provider.Options{Max: 1, Sandbox: confined})
	defer pool.Close()
	mine, other := filepath.Join(work, "mine"), filepath.Join(work, "other")
	if err := errors.Join(os.Mkdir(mine, 0o700), os.Mkdir(other, 0o700)); err != nil {
		t.Fatal(err)
	}
	lease := pool.Lend(t.Context(),
		provider.Use{Files: map[string]string{"x": plugins[0]}, Admit: confined.Admits(mine)})
	door := lease.Reattach()["x"].Addr.String
	if door == "" {
		t.Fatal("no provider is lent")
	}
	expect := func(who, dir string, want bool) {
		t.Helper()
		if got := knocks(t, confined, dir, door); got != want {
			t.Errorf("%s is let in: %t, want %t", who, got, want)
		}
	}
	expect("its run", mine, true)
	expect("another run", other, false)
	if served(door, nil) == nil {
		t.Error("a process that belongs to no run is let in")
	}
	lease.GiveBack()
	expect("its run when that is over", mine, false)
}
