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

// The CLI derives the key of a passphrase in every process: a million rounds of a hash, a quarter
// of a second of CPU time, and more than everything else it does. With a key service it derives
// none. So each run serves its key itself, with the API of Vault's transit engine, the only one of
// Pulumi's whose address can be set. The encryption is the same either way. Only a checkpoint's
// description of its key differs, and it is restored before the checkpoint is stored.
const (
	// serviceKey is the CLI's name of the key in settings and checkpoints.
	serviceKey  = "hashivault://machine"
	servicePath = "/v1/transit/decrypt/machine"
	serviceType = "cloud"
	// serviceVariables tell the CLI where the service is. The variables of its Vault provider start
	// with the same prefix and change how the CLI calls the service.
	servicePrefix  = "VAULT_"
	serviceAddress = servicePrefix + "SERVER_URL"
	serviceToken   = servicePrefix + "SERVER_TOKEN"
	// serviceTimeout limits a request, which never has to wait for anything.
	serviceTimeout = 10 * time.Second
)

// serves reports whether a run serves its own key. It does not if its environment has variables for
// Vault: they are meant for a provider, and the CLI would use them itself.
func (e *Engine) serves(r RunSpec) bool {
	for _, variables := range []map[string]string{e.options.Environment, r.Environment, r.Files} {
		if slices.ContainsFunc(slices.Collect(maps.Keys(variables)),
			func(name string) bool { return strings.HasPrefix(name, servicePrefix) }) {
			return false
		}
	}
	return true
}

// token returns what a run's CLI presents to get the key. Other runs can reach the socket as well.
func (k *Key) token(run string) string {
	sum := hmac.New(sha256.New, k.derived)
	_, _ = io.WriteString(sum, "token of the run "+run) // writing to a hash never fails
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// keyService gives a key to processes that present its token.
type keyService struct {
	server *http.Server
	ended  chan struct{}
}

// serveKey serves a key on a socket until it is closed.
func serveKey(socket string, key *Key, token string) (*keyService, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("serving the key of checkpoints: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(servicePath, func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Vault-Token")), []byte(token)) != 1 {
			http.Error(w, `{"errors":["the token belongs to another run"]}`, http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string][]byte{"plaintext": key.derived}}) // the client may be gone
	})
	s := &keyService{ended: make(chan struct{}), server: &http.Server{
		Handler: mux, ReadHeaderTimeout: serviceTimeout, ReadTimeout: serviceTimeout, WriteTimeout: serviceTimeout,
		MaxHeaderBytes: maxText,
		ErrorLog:       log.New(io.Discard, "", 0),
	}}
	go func() {
		defer close(s.ended)
		_ = s.server.Serve(listener) // it was closed, or the CLI reports that it does not respond
	}()
	return s, nil
}

// close stops the service, if any, and closes its connections.
func (s *keyService) close() error {
	if s == nil {
		return nil
	}
	err := s.server.Close()
	<-s.ended
	return err
}

// service is a checkpoint's description of a served key.
type service struct {
	Type  string `json:"type"`
	State struct {
		URL string `json:"url"`
		// Key contains the salt, so that the checkpoint of an abandoned run can be read. The CLI passes
		// it to the service.
		Key []byte `json:"encryptedkey"`
	} `json:"state"`
}

// served returns a checkpoint for the CLI of a run that serves its own key.
func served(raw []byte) ([]byte, error) {
	salt, err := SaltOf(raw)
	if err != nil || salt == "" {
		return raw, err
	}
	described := service{Type: serviceType}
	described.State.URL, described.State.Key = serviceKey, []byte(salt)
	return withSecretsProvider(raw, described)
}

// stored returns a checkpoint as it is stored, however the CLI got its key.
func stored(raw []byte) ([]byte, error) {
	read, err := readCheckpoint(raw)
	if err != nil {
		return nil, err
	}
	var described service
	if decode(read.latest[secretsField], &described) != nil || described.Type != serviceType ||
		described.State.URL != serviceKey {
		return raw, nil
	}
	if len(described.State.Key) == 0 {
		return nil, errors.New("reading a checkpoint: it does not say which key encrypts it")
	}
	provider := secretsProvider{Type: passphraseType}
	provider.State.Salt = string(described.State.Key)
	return withSecretsProvider(raw, provider)
}

// withSecretsProvider returns a checkpoint with another description of its key, and otherwise
// unchanged.
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
