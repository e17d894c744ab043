package backend_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
)

func TestACopyIsReadAndNeverWritten(t *testing.T) {
	server := backend.New(backend.Options{})
	if _, err := server.OpenCopy([]byte("{}")); err == nil {
		t.Error("a server that does not serve opens a copy")
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	const content = `{"serial": 7}`
	opened, err := server.OpenCopy([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	other, err := server.OpenCopy([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, password string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, opened.Address, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth(opened.Username, password)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if status, body := send(http.MethodGet, opened.Password); status != http.StatusOK || body != content {
		t.Errorf("GET returns %d %q, want the copy", status, body)
	}
	for _, method := range []string{http.MethodPost, "LOCK", "UNLOCK"} {
		if status, _ := send(method, opened.Password); status != http.StatusForbidden {
			t.Errorf("%s returns %d, want %d", method, status, http.StatusForbidden)
		}
	}
	if status, _ := send(http.MethodGet, other.Password); status != http.StatusUnauthorized {
		t.Errorf("another copy's password opens it: %d", status)
	}
	opened.Close()
	if status, _ := send(http.MethodGet, opened.Password); status != http.StatusUnauthorized {
		t.Errorf("a copy that is closed is served: %d", status)
	}
}
