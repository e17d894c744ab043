package pulumi

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The CLI derives the key of a passphrase anew in every process: a million rounds of a hash, a quarter of a second of CPU time and more than all
// else that it does. It derives none where a key service keeps the key. So a run is a service of its own for its key, in the words of Vault's
// transit engine, which is the only one of Pulumi's that takes an address. What is encrypted is the same either way; only what a checkpoint says
// of its key differs, and that is written as it was before it is stored.
const (
	// serviceKey is the name of the key to the CLI, as in settings and in checkpoints.
	serviceKey  = "hashivault://machine"
	servicePath = "/v1/transit/decrypt/machine"
	serviceType = "cloud"
	// serviceVariables are what the CLI finds a service by. Those that its provider for Vault reads begin alike, and change how it is asked.
	servicePrefix  = "VAULT_"
	serviceAddress = servicePrefix + "SERVER_URL"
	serviceToken   = servicePrefix + "SERVER_TOKEN"
	// serviceTimeout bounds a request, of which there is nothing to wait for.
	serviceTimeout = 10 * time.Second
)

// serves reports whether a run is its own key service. It is none where its environment has variables for Vault: they are for a provider, and the
// CLI would take them for its own.
func (e *Engine) serves(r RunSpec) bool {
	for _, variables := range []map[string]string{e.options.Environment, r.Environment, r.Files} {
		if slices.ContainsFunc(slices.Collect(maps.Keys(variables)), func(name string) bool { return strings.HasPrefix(name, servicePrefix) }) {
			return false
		}
	}
	return true
}

// token is what a run's CLI shows to get the key. Other runs reach the socket as well.
func (k *Key) token(run string) string {
	sum := hmac.New(sha256.New, k.derived)
	_, _ = io.WriteString(sum, "token of the run "+run) // a hash takes everything
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// keyService hands a key to the processes that show its token.
type keyService struct {
	server *http.Server
	ended  chan struct{}
}

// serveKey serves a key on a socket until it is closed.
func serveKey(socket string, key *Key, token string) (*keyService, error) {
	listener, err := net.Listen("unix", socket) //nolint:noctx // it waits for nothing
	if err != nil {
		return nil, fmt.Errorf("serving the key of checkpoints: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(servicePath, func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Vault-Token")), []byte(token)) != 1 {
			http.Error(w, `{"errors":["the token is not this run's"]}`, http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string][]byte{"plaintext": key.derived}}) // it may be gone
	})
	s := &keyService{ended: make(chan struct{}), server: &http.Server{
		Handler: mux, ReadHeaderTimeout: serviceTimeout, ReadTimeout: serviceTimeout, WriteTimeout: serviceTimeout, MaxHeaderBytes: maxText,
		ErrorLog: log.New(io.Discard, "", 0),
	}}
	go func() {
		defer close(s.ended)
		_ = s.server.Serve(listener) // it is closed, or the CLI says that it does not respond
	}()
	return s, nil
}

// close ends the service, if there is one, with its connections.
func (s *keyService) close() error {
	if s == nil {
		return nil
	}
	err := s.server.Close()
	<-s.ended
	return err
}

// service is what a checkpoint says of a key that is served.
type service struct {
	Type  string `json:"type"`
	State struct {
		URL string `json:"url"`
		// Key has the salt, so that the checkpoint of an abandoned run can be read. The CLI passes it on to the service.
		Key []byte `json:"encryptedkey"`
	} `json:"state"`
}

// served returns a checkpoint as the CLI finds it in a run that is its own key service.
func served(raw []byte) ([]byte, error) {
	salt, err := SaltOf(raw)
	if err != nil || salt == "" {
		return raw, err
	}
	described := service{Type: serviceType}
	described.State.URL, described.State.Key = serviceKey, []byte(salt)
	return withSecretsProvider(raw, described)
}

// stored returns a checkpoint as it is stored, whoever has given the CLI its key.
func stored(raw []byte) ([]byte, error) {
	read, err := readCheckpoint(raw)
	if err != nil {
		return nil, err
	}
	var described service
	if decode(read.latest[secretsField], &described) != nil || described.Type != serviceType || described.State.URL != serviceKey {
		return raw, nil
	}
	if len(described.State.Key) == 0 {
		return nil, errors.New("reading a checkpoint: it does not say which key it is encrypted with")
	}
	provider := secretsProvider{Type: passphraseType}
	provider.State.Salt = string(described.State.Key)
	return withSecretsProvider(raw, provider)
}

// withSecretsProvider returns a checkpoint that says something else of its key, and is as it was in all other things.
func withSecretsProvider(raw []byte, described any) ([]byte, error) {
	read, err := readCheckpoint(raw)
	if err != nil {
		return nil, err
	}
	if read.latest[secretsField], err = json.Marshal(described); err != nil {
		return nil, fmt.Errorf("writing a checkpoint: %w", err)
	}
	if read.Checkpoint["latest"], err = json.Marshal(read.latest); err != nil {
		return nil, fmt.Errorf("writing a checkpoint: %w", err)
	}
	read.latest = nil // it is encoded already
	return read.encode()
}
