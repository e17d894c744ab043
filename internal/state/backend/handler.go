package backend

import (
	"context"
	"crypto/md5" // what the http backend checks transfers with
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

const (
	methodLock   = "LOCK"
	methodUnlock = "UNLOCK"

	headerMD5   = "Content-MD5"
	allowed     = "GET, POST, LOCK, UNLOCK"
	maxLockBody = 64 << 10
	pauseQuery  = "pause"
)

// engineLock is the lock of an engine process. It lives in memory: the session holds the persisted lock.
type engineLock struct {
	mu   sync.Mutex
	id   string
	info []byte
	// last is the lock that was released last, so that a repeated UNLOCK succeeds.
	last string
}

// take returns the holder's info if another holds the lock.
func (l *engineLock) take(id string, info []byte) (holder []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id != "" && l.id != id {
		return l.info
	}
	l.id, l.info = id, info
	return nil
}

// drop releases the lock, or returns the holder and false if the lock is another.
func (l *engineLock) drop(id string) (holder []byte, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == "" {
		return nil, id == l.last
	}
	if l.id != id {
		return l.info, false
	}
	l.id, l.info, l.last = "", nil, id
	return nil, true
}

// held reports whether the lock is the given one, and returns the holder.
func (l *engineLock) held(id string) (holder []byte, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.info, l.id != "" && l.id == id
}

func (b *Server) serve(w http.ResponseWriter, request *http.Request) {
	opened, status := b.authenticate(request)
	if opened == nil {
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="state"`)
		}
		b.refuse(w, request, status, http.StatusText(status))
		return
	}
	switch request.Method {
	case http.MethodGet:
		b.get(w, request, opened)
		return
	case http.MethodPost, methodLock, methodUnlock:
		if opened.store == nil {
			b.refuse(w, request, http.StatusForbidden, "this is a copy of a state, which is only read")
			return
		}
	}
	switch request.Method {
	case http.MethodPost:
		b.post(w, request, opened)
	case methodLock:
		b.lock(w, request, opened)
	case methodUnlock:
		b.unlock(w, request, opened)
	default:
		w.Header().Set("Allow", allowed)
		b.refuse(w, request, http.StatusMethodNotAllowed, "use one of "+allowed)
	}
}

func (b *Server) get(w http.ResponseWriter, request *http.Request, opened *openState) {
	if paused, ok := opened.store.(Pauser); ok && request.URL.Query().Has(pauseQuery) {
		b.pause(w, request, paused)
		return
	}
	ctx, cancel := context.WithTimeout(request.Context(), b.options.SaveTimeout)
	defer cancel()
	raw, err := opened.read(ctx)
	switch {
	case err != nil:
		b.fail(w, request, err)
	case raw == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set(headerMD5, md5Of(raw))
		b.write(w, request, http.StatusOK, raw)
	}
}

// pause answers with an empty state when the store wants it.
func (b *Server) pause(w http.ResponseWriter, request *http.Request, paused Pauser) {
	control := http.NewResponseController(w)
	never := time.Time{}
	if err := errors.Join(control.SetReadDeadline(never), control.SetWriteDeadline(never)); err == nil {
		paused.Pause(request.Context())
	}
	w.Header().Set("Content-Type", "application/json")
	b.write(w, request, http.StatusOK, []byte(`{"version":4,"terraform_version":"1.0.0","serial":1,"lineage":"pause","outputs":{},"resources":[]}`))
}

// read returns the stored state, or the copy.
func (o *openState) read(ctx context.Context) ([]byte, error) {
	if o.store == nil {
		return o.fixed, nil
	}
	return o.store.Read(ctx)
}

func (b *Server) post(w http.ResponseWriter, request *http.Request, opened *openState) {
	select {
	case opened.writing <- struct{}{}:
		defer func() { <-opened.writing }()
	case <-request.Context().Done():
		return
	}
	if holder, ok := opened.lock.held(request.URL.Query().Get("ID")); !ok {
		b.refuseLock(w, request, holder)
		return
	}
	body, ok := b.body(w, request, b.options.MaxBody)
	if !ok {
		return
	}
	// The state was received completely: save it even if the engine disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(request.Context()), b.options.SaveTimeout)
	defer cancel()
	if err := opened.store.Write(ctx, body); err != nil {
		b.fail(w, request, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (b *Server) lock(w http.ResponseWriter, request *http.Request, opened *openState) {
	id, info, ok := b.lockInfo(w, request)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(request.Context(), b.options.SaveTimeout)
	defer cancel()
	if _, err := opened.store.Read(ctx); err != nil {
		b.fail(w, request, err)
		return
	}
	if holder := opened.lock.take(id, info); holder != nil {
		b.refuseLock(w, request, holder)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (b *Server) unlock(w http.ResponseWriter, request *http.Request, opened *openState) {
	id, _, ok := b.lockInfo(w, request)
	if !ok {
		return
	}
	if holder, ok := opened.lock.drop(id); !ok {
		b.refuseLock(w, request, holder)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// refuseLock rejects a request with the wrong lock: 423 with the holder, or 409 if no lock is held.
func (b *Server) refuseLock(w http.ResponseWriter, request *http.Request, holder []byte) {
	if holder == nil {
		b.refuse(w, request, http.StatusConflict, "the lock is not held; take it and send its id")
		return
	}
	b.options.Logger.Info("Refused a request with another's lock", "method", request.Method, "path", request.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	b.write(w, request, http.StatusLocked, holder)
}

// lockInfo reads an engine's description of its lock.
func (b *Server) lockInfo(w http.ResponseWriter, request *http.Request) (id string, info []byte, ok bool) {
	info, ok = b.body(w, request, maxLockBody)
	if !ok {
		return "", nil, false
	}
	var parsed struct{ ID string }
	if err := json.Unmarshal(info, &parsed); err != nil || parsed.ID == "" {
		b.refuse(w, request, http.StatusBadRequest, "the body is no lock info with an ID")
		return "", nil, false
	}
	return parsed.ID, info, true
}

// body reads a request of bounded size, and verifies its MD5 checksum, if any.
func (b *Server) body(w http.ResponseWriter, request *http.Request, limit int64) ([]byte, bool) {
	if request.ContentLength > limit {
		b.refuse(w, request, http.StatusRequestEntityTooLarge, "the body is too large")
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, limit))
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		b.refuse(w, request, http.StatusRequestEntityTooLarge, "the body is too large")
		return nil, false
	}
	if err != nil {
		b.refuse(w, request, http.StatusServiceUnavailable, "the body did not arrive whole")
		return nil, false
	}
	if sent := strings.TrimSpace(request.Header.Get(headerMD5)); sent != "" && sent != md5Of(body) {
		b.refuse(w, request, http.StatusBadRequest, "the body is not what "+headerMD5+" says")
		return nil, false
	}
	return body, true
}

// fail maps an error of the store to a response. Engines retry after a 5xx status, so only errors that a retry may fix
// get one.
func (b *Server) fail(w http.ResponseWriter, request *http.Request, err error) {
	status := http.StatusFailedDependency
	refused, isRefused := errors.AsType[*statefile.RefusedError](err)
	_, isUnavailable := errors.AsType[*state.UnavailableError](err)
	switch {
	case isRefused && refused.Reason == statefile.ReasonCorrupt:
		status = http.StatusBadRequest
	case isRefused, errors.Is(err, state.ErrFenced):
		status = http.StatusConflict
	case errors.Is(err, state.ErrClosed):
		status = http.StatusGone
	case isUnavailable:
		status = http.StatusServiceUnavailable
	}
	b.refuse(w, request, status, err.Error())
}

func (b *Server) refuse(w http.ResponseWriter, request *http.Request, status int, why string) {
	b.options.Logger.Info("Refused a request", "method", request.Method, "path", request.URL.Path, "status", status,
		"reason", why)
	http.Error(w, why, status)
}

func (b *Server) write(w http.ResponseWriter, request *http.Request, status int, body []byte) {
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		b.options.Logger.V(1).Info("An engine hung up", "method", request.Method, "path", request.URL.Path, "error",
			err.Error())
	}
}

func md5Of(body []byte) string {
	sum := md5.Sum(body)
	return base64.StdEncoding.EncodeToString(sum[:])
}
