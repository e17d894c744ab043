package apiproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault replaces the API server's response to requests.
type Fault struct {
	// At says whether the API server executes the requests first.
	At Moment
	// Match selects the requests.
	Match func(*http.Request) bool
	// Status is the response's status. With zero, the connection is closed without a response.
	Status int
	// Delay comes first. With Slow, it is the only effect.
	Delay time.Duration
	Slow  bool
	// Times limits how many requests are affected; zero means all until the fault is lifted.
	Times int
}

// Injection is an active fault.
type Injection struct {
	Fault
	proxy *Proxy
	met   int
}

// Met returns how many requests the fault has affected.
func (i *Injection) Met() int {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	return i.met
}

// Lift removes the fault, and returns how many requests it affected.
func (i *Injection) Lift() int {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	i.proxy.faults = slices.DeleteFunc(i.proxy.faults, func(other *Injection) bool { return other == i })
	return i.met
}

type failure struct{ status int }

func (f *failure) Error() string {
	return fmt.Sprintf("the proxy responds %d %s", f.status, http.StatusText(f.status))
}

func (p *Proxy) Inject(f Fault) *Injection {
	on := &Injection{Fault: f, proxy: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, on)
	return on
}

// meet applies the active faults to a request.
func (p *Proxy) meet(request *http.Request, at Moment) error {
	for _, f := range p.matching(request, at) {
		select {
		case <-time.After(f.Delay):
		case <-request.Context().Done():
			return request.Context().Err()
		}
		if !f.Slow {
			return &failure{status: f.Status}
		}
	}
	return nil
}

func (p *Proxy) matching(request *http.Request, at Moment) []Fault {
	p.mu.Lock()
	on := slices.Clone(p.faults)
	p.mu.Unlock()
	var matching []Fault
	for _, f := range on {
		if f.At != at || !f.Match(request) {
			continue
		}
		p.mu.Lock()
		due := f.Times == 0 || f.met < f.Times
		if due {
			f.met++
		}
		p.mu.Unlock()
		if due {
			matching = append(matching, f.Fault)
		}
	}
	return matching
}

// fail responds to a request that failed at the proxy. A request that did not reach the API server gets no response, as
// if the server were down.
func fail(response http.ResponseWriter, _ *http.Request, err error) {
	if errors.Is(err, errRefused) {
		response.WriteHeader(http.StatusBadGateway)
		return
	}
	refused, ok := errors.AsType[*failure](err)
	if !ok || refused.status == 0 {
		panic(http.ErrAbortHandler)
	}
	reasons := map[int]metav1.StatusReason{
		http.StatusConflict:              metav1.StatusReasonConflict,
		http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
		http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
		http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	}
	response.Header().Set("Content-Type", "application/json")
	if refused.status == http.StatusTooManyRequests {
		response.Header().Set("Retry-After", "1")
	}
	response.WriteHeader(refused.status)
	_ = json.NewEncoder(response).Encode(metav1.Status{ // the client may be gone
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(refused.status), Reason: reasons[refused.status], Message: refused.Error(),
	})
}

// statePrefix is the name prefix of state Secrets.
const statePrefix = "tfstate-default-"

// WritesState matches requests that create, change or delete state Secrets.
func WritesState(request *http.Request) bool {
	if request.Method == http.MethodGet || !strings.HasPrefix(request.URL.Path, "/api/v1/namespaces/") {
		return false
	}
	_, name, ok := strings.Cut(request.URL.Path, "/secrets")
	if ok && request.Method == http.MethodPost && name == "" {
		body, _ := request.Context().Value(bodyKey{}).([]byte)
		return bytes.Contains(body, []byte(statePrefix))
	}
	return ok && strings.HasPrefix(name, "/"+statePrefix)
}

type bodyKey struct{}

// keepBody keeps the body of a create for Match, which may run after the proxy consumed it.
func keepBody(request *http.Request) *http.Request {
	if request.Method != http.MethodPost || request.Body == nil {
		return request
	}
	body, err := io.ReadAll(request.Body)
	if err != nil { // the client is gone
		panic(http.ErrAbortHandler)
	}
	request = request.WithContext(context.WithValue(request.Context(), bodyKey{}, body))
	request.Body = io.NopCloser(bytes.NewReader(body))
	return request
}
